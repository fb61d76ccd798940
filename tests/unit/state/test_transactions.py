"""Writes become ZooKeeper operations that do just what was asked, in transactions that fit."""

from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.state.transactions import Tree, TreeOperation, Verb, plan, split


def operations(tree: Tree, *writes: Write) -> list[tuple[str, str]]:
    return [
        (operation.verb.value, operation.path)
        for item in plan(tree, writes)
        for operation in item.operations
    ]


def test_missing_parents_are_created_first() -> None:
    assert operations(Tree(), Write("Tasks/ps-0/TaskInfo", b"x")) == [
        ("create", "Tasks"),
        ("create", "Tasks/ps-0"),
        ("create", "Tasks/ps-0/TaskInfo"),
    ]


def test_an_existing_value_is_set() -> None:
    tree = Tree(["Tasks/ps-0/TaskInfo"])
    assert operations(tree, Write("Tasks/ps-0/TaskInfo", b"x")) == [("set", "Tasks/ps-0/TaskInfo")]


def test_emptied_parents_are_deleted_after_their_last_child() -> None:
    tree = Tree(["Tasks/ps-0/TaskInfo", "Tasks/ps-0/TaskStatus", "Epoch"])
    gone = [Write("Tasks/ps-0/TaskInfo", None), Write("Tasks/ps-0/TaskStatus", None)]
    assert operations(tree, *gone) == [
        ("delete", "Tasks/ps-0/TaskInfo"),
        ("delete", "Tasks/ps-0/TaskStatus"),
        ("delete", "Tasks/ps-0"),
        ("delete", "Tasks"),
    ]


def test_deleting_what_is_missing_takes_no_transaction() -> None:
    assert split(plan(Tree(), [Write("Epoch", None)])) == []


def test_planning_leaves_the_tree_as_it_is_until_applied() -> None:
    tree = Tree(["Epoch"])
    planned = plan(tree, [Write("Tasks/a/x", b""), Write("Epoch", None)])
    assert list(tree) == ["Epoch"]
    for item in planned:
        tree.apply(item.changes)
    assert sorted(tree) == ["Tasks", "Tasks/a", "Tasks/a/x"]


def test_a_transaction_ends_where_the_next_write_would_not_fit() -> None:
    planned = plan(Tree(), [Write(f"{i}", b"x" * 400) for i in range(5)])
    parts = split(planned, max_bytes=1_200, max_operations=100)
    assert [[item.index for item in part] for part in parts] == [[0, 1], [2, 3], [4]]


def test_a_transaction_has_no_more_operations_than_allowed() -> None:
    planned = plan(Tree(), [Write(f"{i}", b"") for i in range(5)])
    assert [len(part) for part in split(planned, max_operations=2)] == [2, 2, 1]


def test_one_write_larger_than_the_limit_goes_alone() -> None:
    planned = plan(Tree(), [Write("a", b""), Write("b", b"x" * 5000), Write("c", b"")])
    assert [len(part) for part in split(planned, max_bytes=1_000)] == [1, 1, 1]


paths = st.lists(st.sampled_from(["a", "b"]), min_size=3, max_size=3).map("/".join)
writes = st.builds(Write, paths, st.none() | st.binary(max_size=40))


def replay(nodes: dict[str, bytes], operation: TreeOperation) -> None:
    """What ZooKeeper does with an operation, refusals included."""
    path = operation.path
    if operation.verb is Verb.DELETE:
        assert not any(other.startswith(f"{path}/") for other in nodes), "not empty"
        del nodes[path]
        return
    assert (path in nodes) == (operation.verb is Verb.SET)
    parent = path.rpartition("/")[0]
    assert not parent or parent in nodes, "no parent"
    nodes[path] = operation.value


@given(st.lists(writes, max_size=12), st.lists(writes, max_size=12), st.integers(3, 8))
def test_any_writes_lead_to_the_same_values_as_a_plain_map_and_every_part_is_a_prefix(
    earlier: list[Write], later: list[Write], max_operations: int
) -> None:
    nodes: dict[str, bytes] = {}
    values: dict[str, bytes] = {}
    tree = Tree()
    for commit in (earlier, later):
        done = 0
        for part in split(plan(tree, commit), max_operations=max_operations):
            for item in part:
                for operation in item.operations:
                    replay(nodes, operation)
                tree.apply(item.changes)
            until = part[-1].index + 1
            apply(values, commit[done:until])
            done = until
            assert leaves(nodes) == values
        apply(values, commit[done:])
        assert leaves(nodes) == values
        assert set(tree) == set(nodes)


def apply(values: dict[str, bytes], writes: list[Write]) -> None:
    for write in writes:
        if write.value is None:
            values.pop(write.path, None)
        else:
            values[write.path] = write.value


def leaves(nodes: dict[str, bytes]) -> dict[str, bytes]:
    return {
        path: value
        for path, value in nodes.items()
        if not any(other.startswith(f"{path}/") for other in nodes)
    }
