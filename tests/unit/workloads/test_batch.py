"""The shards of a batch: all of the input, each piece once, whatever happens on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.core.spec.workload_spec import BatchSpec, output_of
from dcos_tensorflow.workloads import producer_of
from dcos_tensorflow.workloads.producer import KeptUnit, WorkloadError

PREFIX, MANIFEST = "s3://bucket/images/", "inputs.txt"


def a_batch(begin: int = 0, end: int = 1000, per_shard: int = 100, **more: Any) -> BatchSpec:
    return BatchSpec(
        **{"output": "out/part-{index}", **more, "per_shard": per_shard, "begin": begin, "end": end}
    )


def listed(per_shard: int, listing: str, **more: Any) -> BatchSpec:
    return BatchSpec(output="out/part-{index}", per_shard=per_shard, listing=listing, **more)


def pieces(units: Sequence[Any]) -> list[tuple[int, int]]:
    return [(unit.payload["shard"]["begin"], unit.payload["shard"]["end"]) for unit in units]


def names(units: Sequence[Any]) -> list[str]:
    shards = [unit.payload["shard"] for unit in units]
    return [shard["prefix"] + name for shard in shards for name in shard["names"]]


def test_a_range_is_cut_into_shards_and_the_last_one_is_what_is_left() -> None:
    batch = producer_of(a_batch(5, 26, 10))
    found = batch.next(0, 99)
    assert pieces(found.units) == [(5, 15), (15, 25), (25, 26)]
    assert found.last
    assert batch.total == 3


@pytest.mark.parametrize("listing", [PREFIX, MANIFEST])
def test_more_shards_than_a_service_may_have_are_refused_by_the_option_that_makes_them(
    listing: str,
) -> None:
    inputs = [f"{PREFIX}a"] * 4_000_000
    with pytest.raises(WorkloadError) as refused:
        producer_of(listed(1, listing), inputs=inputs)
    assert str(refused.value) == (
        f"batch.inputs.per_shard of 1 makes 4000000 shards of what is listed at {listing}, and"
        " 100000 is the most; batch.inputs.per_shard of 40 would do"
    )
    assert producer_of(listed(40, listing), inputs=inputs).total == 100_000


def test_a_shard_finds_its_piece_in_its_environment_and_is_told_where_to_write() -> None:
    assert producer_of(a_batch()).next(3, 1).units[0].payload == {
        "env": {"SHARD_INDEX": "3", "SHARD_BEGIN": "300", "SHARD_END": "400"},
        "shard": {"index": 3, "begin": 300, "end": 400},
        "output": "out/part-3",
    }


@pytest.mark.parametrize(
    ("output", "path"),
    [("a/{index}", "a/7"), ("a/{index:05}.json", "a/00007.json"), ("{index}/{index:2}", "7/07")],
)
def test_the_index_stands_in_the_name_of_the_output(output: str, path: str) -> None:
    assert output_of(a_batch(output=output), 7) == path


def test_the_names_of_a_prefix_are_kept_without_it() -> None:
    inputs = [f"{PREFIX}{letter}" for letter in "abcde"]
    found = producer_of(listed(2, PREFIX), inputs=inputs).next(0, 9)
    assert found.units[1].payload["shard"] == {
        "index": 1,
        "begin": 2,
        "end": 4,
        "prefix": PREFIX,
        "names": ["c", "d"],
    }
    assert names(found.units) == inputs


@given(
    st.integers(0, 60),
    st.integers(1, 7),
    st.sampled_from(["", PREFIX, MANIFEST]),
    st.lists(st.integers(1, 5), max_size=12),
    st.none() | st.sets(st.integers(0, 20)),
)
def test_every_input_comes_once_after_any_crash(
    count: int, per_shard: int, listing: str, turns: list[int], there: set[int] | None
) -> None:
    """Of a prefix some come and go meanwhile: those that stay come once all the same."""
    resume = there is not None
    spec = (
        listed(per_shard, listing, resume=resume)
        if listing
        else a_batch(0, count, per_shard, resume=resume)
    )
    inputs = [f"{PREFIX}{number:03}" for number in range(count)] if listing else []
    existing = {output_of(spec, index) for index in there or ()}
    kept: list[KeptUnit] = []
    last = False
    for turn in [*turns, 999]:
        stored = json.loads(json.dumps([[unit.number, unit.payload] for unit in kept]))
        batch = producer_of(
            spec, [KeptUnit(*unit) for unit in stored], inputs=inputs, existing=existing
        )
        found = batch.next(len(kept), turn)
        assert batch.total >= len(kept) + len(found.units)
        kept += [KeptUnit(unit.number, unit.payload) for unit in found.units]
        existing |= {unit.payload["output"] for unit in found.units}
        last = found.last
    assert last
    shards = {unit.payload["shard"]["index"]: unit for unit in kept}
    assert len(shards) == len(kept)
    wanted = set(range(-(-count // per_shard))) - (there or set())
    assert set(shards) == wanted
    for index, unit in shards.items():
        piece = range(count)[index * per_shard : (index + 1) * per_shard]
        assert pieces([unit]) == [(piece.start, piece.stop)]
        if listing:
            assert names([unit]) == inputs[piece.start : piece.stop]


def test_objects_that_come_later_change_no_shard_that_was_given() -> None:
    spec = listed(2, PREFIX)
    batch = producer_of(spec, inputs=[f"{PREFIX}{letter}" for letter in "bdfhj"])
    kept = [KeptUnit(unit.number, unit.payload) for unit in batch.next(0, 1).units]
    again = producer_of(spec, kept, inputs=[f"{PREFIX}{letter}" for letter in "abcdefj"])
    assert names(again.next(1, 9).units) == [f"{PREFIX}{letter}" for letter in "efj"]
    assert [unit.payload["shard"]["index"] for unit in again.next(1, 9).units] == [1, 2]


def test_a_manifest_that_has_changed_is_refused() -> None:
    spec = listed(2, MANIFEST)
    kept = [
        KeptUnit(unit.number, unit.payload)
        for unit in producer_of(spec, inputs=["a", "b", "c"]).next(0, 1).units
    ]
    with pytest.raises(WorkloadError, match=r"inputs\.txt is not what it was .* line 2 was b"):
        producer_of(spec, kept, inputs=["a", "x", "c"])


def test_outputs_that_are_there_are_refused_and_made_up_for_with_resume() -> None:
    there = ["out/part-1", "out/part-3", "out/other"]
    with pytest.raises(WorkloadError, match="2 outputs of this batch are there already"):
        producer_of(a_batch(0, 500), existing=there)
    found = producer_of(a_batch(0, 500, resume=True), existing=there).next(0, 9)
    assert pieces(found.units) == [(0, 100), (200, 300), (400, 500)]
    assert [unit.number for unit in found.units] == [0, 1, 2]


def test_a_batch_of_which_all_is_there_has_nothing_to_do() -> None:
    spec = a_batch(0, 200, resume=True)
    found = producer_of(spec, existing=["out/part-0", "out/part-1"]).next(0, 9)
    assert found.units == ()
    assert found.last


def test_names_that_are_too_long_to_be_kept_are_refused_with_what_would_do() -> None:
    inputs = [f"{PREFIX}{'x' * 90}{number:04}" for number in range(200)]
    with pytest.raises(WorkloadError, match="would do") as refused:
        producer_of(listed(100, PREFIX), inputs=inputs).next(0, 1)
    fewer = int(str(refused.value).split("per_shard of ")[1].split()[0])
    assert producer_of(listed(fewer, PREFIX), inputs=inputs).next(0, 99).last


def test_ten_thousand_shards_are_made_in_no_time() -> None:
    batch = producer_of(a_batch(0, 10_000, 1))
    assert sum(len(batch.next(first, 100).units) for first in range(0, 10_000, 100)) == 10_000
