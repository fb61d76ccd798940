"""Which options in force are not those that were asked for."""

from typing import Any

import pytest

from dcos_tensorflow.options import effective, load
from dcos_tensorflow.options.differences import differing
from dcos_tensorflow.plugin.update_check import laid_over

IN_FORCE = effective(
    load(
        {
            "service": {
                "job_name": "train",
                "env": {"DATA": "/mnt", "API_TOKEN": "hidden"},
            },
            "worker": {"count": 2, "min_count": 1},
        }
    )
)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"worker": {"count": 3}}, {"worker.count": 2}),
        ({"worker": {"count": "many", "cpus": 1.0}}, {"worker.count": 2}),
        ({"worker": "two"}, {}),
        ({"gpu_worker": {"port": 5000}}, {"gpu_worker.port": None}),
        # As a package gives them, in text: the same, another, nonsense.
        ({"service": {"env": '{"DATA": "/mnt", "API_TOKEN": "x"}'}}, {}),
        ({"service": {"env": '{"API_TOKEN": "x"}'}}, {}),
        ({"worker": {"placement_constraint": "[["}}, {"worker.placement_constraint": "[]"}),
        ({"no": {"such": 1}}, {}),
    ],
)
def test_each_option_that_differs_is_named_with_what_is_in_force(
    asked: dict[str, Any], found: dict[str, Any]
) -> None:
    assert differing(IN_FORCE, asked) == found


def test_laid_over_what_was_asked_they_give_what_is_in_force() -> None:
    asked = {"worker": {"count": 3}, "gpu_worker": {"port": 5000, "count": 0}}
    assert laid_over(asked, differing(IN_FORCE, asked)) == {
        "worker": {"count": 2},
        "gpu_worker": {"count": 0},
    }
    assert asked["worker"] == {"count": 3}
