"""The packing that benchmarks/placement.py measures holds with few agents, too."""

from benchmarks import placement

AGENTS = 100


def test_tasks_of_mixed_sizes_that_want_all_cpus_get_them() -> None:
    found = placement.fill_with_place(AGENTS, 50, placement.all_mixed_once(AGENTS), least=0)
    assert found.fill >= 0.99


def test_little_is_free_when_the_first_of_many_tasks_finds_no_place() -> None:
    found = placement.fill_with_place(AGENTS, 1, placement.mixed_sizes, least=1)
    assert found.fill >= 0.98
