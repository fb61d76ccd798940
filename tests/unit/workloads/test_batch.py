"""The shards of a batch: all of the input, each piece once, whatever happens on the way."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.core.spec.workload_spec import BatchSpec, output_of
from dcos_tensorflow.task.supervise.shard_record import text_of
from dcos_tensorflow.workloads import producer_of
from dcos_tensorflow.workloads.producer import KeptUnit, Producer, WorkloadError

PREFIX, MANIFEST = "s3://bucket/images/", "inputs.txt"


def a_batch(begin: int = 0, end: int = 1000, per_shard: int = 100, **more: Any) -> BatchSpec:
    return BatchSpec(
        **{"output": "out/part-{index}", **more, "per_shard": per_shard, "begin": begin, "end": end}
    )


def listed(per_shard: int, listing: str, **more: Any) -> BatchSpec:
    return BatchSpec(output="out/part-{index}", per_shard=per_shard, listing=listing, **more)


def records_of(batch: Producer) -> dict[str, Any]:
    """Return what is kept beside the outputs of a batch of which all shards have succeeded."""
    payloads = [unit.payload for unit in batch.next(0, 9999).units]
    return {each["output"]: json.loads(text_of(each["shard"])) for each in payloads}


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
        f"batch.inputs.per_shard of 1 makes 4000000 shards of the inputs at {listing}, and"
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
    there = {index for index in there or () if index * per_shard < count}
    existing = {output_of(spec, index) for index in there}
    records = records_of(producer_of(replace(spec, resume=False), inputs=inputs))
    kept: list[KeptUnit] = []
    last = False
    for turn in [*turns, 999]:
        stored = json.loads(json.dumps([[unit.number, unit.payload] for unit in kept]))
        batch = producer_of(
            spec,
            [KeptUnit(*unit) for unit in stored],
            inputs=inputs,
            existing=existing,
            records=records,
        )
        found = batch.next(len(kept), turn)
        assert batch.total >= len(kept) + len(found.units)
        kept += [KeptUnit(unit.number, unit.payload) for unit in found.units]
        existing |= {unit.payload["output"] for unit in found.units}
        last = found.last
    assert last
    shards = {unit.payload["shard"]["index"]: unit for unit in kept}
    assert len(shards) == len(kept)
    wanted = set(range(-(-count // per_shard))) - there
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
    with pytest.raises(WorkloadError, match=r"inputs\.txt has changed since .* line 2 was b"):
        producer_of(spec, kept, inputs=["a", "x", "c"])


def test_outputs_that_are_there_are_refused_and_made_up_for_with_resume() -> None:
    there = ["out/part-1", "out/part-3", "out/other"]
    with pytest.raises(WorkloadError, match="2 outputs of this batch are there already"):
        producer_of(a_batch(0, 500), existing=there)
    records = records_of(producer_of(a_batch(0, 500)))
    found = producer_of(a_batch(0, 500, resume=True), existing=there, records=records).next(0, 9)
    assert pieces(found.units) == [(0, 100), (200, 300), (400, 500)]
    assert [unit.number for unit in found.units] == [0, 1, 2]


def test_a_batch_of_which_all_is_there_has_nothing_to_do() -> None:
    spec = a_batch(0, 200, resume=True)
    records = records_of(producer_of(spec))
    found = producer_of(spec, existing=["out/part-0", "out/part-1"], records=records).next(0, 9)
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


class Outputs:
    """What is there of a batch whose shards have ended, but for the last one."""

    def __init__(self, spec: BatchSpec, inputs: Sequence[str] = (), stamps: Sequence[str] = ()):
        self.records = records_of(producer_of(spec, inputs=inputs, stamps=stamps))
        self.spec = replace(spec, resume=True)
        self.names = sorted(self.records)[:-1]

    def resumed(self, inputs: Sequence[str] = (), stamps: Sequence[str] = (), **more: Any) -> Any:
        batch = producer_of(
            replace(self.spec, **more),
            inputs=inputs,
            stamps=stamps,
            existing=self.names,
            records=self.records,
        )
        return batch.next(0, 999).units

    def refused(self, inputs: Sequence[str] = (), stamps: Sequence[str] = (), **more: Any) -> str:
        with pytest.raises(WorkloadError) as raised:
            self.resumed(inputs, stamps, **more)
        return str(raised.value)


def placed(units: Sequence[Any]) -> list[tuple[str, list[str]]]:
    return [(unit.payload["output"], unit.payload["shard"]["names"]) for unit in units]


@pytest.mark.parametrize("per_shard", [1, 2, 3])
def test_lines_in_front_of_a_manifest_are_worked_on_with_what_is_missing(per_shard: int) -> None:
    outputs = Outputs(listed(2, MANIFEST), "abcdef")
    units = outputs.resumed("xyabcdef", per_shard=per_shard)
    assert sorted(names(units)) == ["e", "f", "x", "y"]
    assert not {unit.payload["output"] for unit in units} & set(outputs.names)


def test_what_is_new_gets_the_names_of_outputs_that_are_free() -> None:
    units = Outputs(listed(2, MANIFEST), "abcdef").resumed("xyabcdef")
    assert placed(units) == [("out/part-2", ["x", "y"]), ("out/part-3", ["e", "f"])]
    assert pieces(units) == [(0, 2), (6, 8)]


def test_objects_that_have_come_between_others_are_worked_on() -> None:
    outputs = Outputs(listed(2, PREFIX), [f"{PREFIX}{letter}" for letter in "bdfh"])
    units = outputs.resumed([f"{PREFIX}{letter}" for letter in "abcdefgh"])
    assert sorted(name.removeprefix(PREFIX) for name in names(units)) == list("acefgh")


def test_a_line_that_comes_a_second_time_is_worked_on_a_second_time() -> None:
    assert names(Outputs(listed(1, MANIFEST), "abc").resumed("aabc")) == ["a", "c"]


@pytest.mark.parametrize(
    ("begin", "end", "per_shard", "missing"),
    [
        (0, 6, 3, [(4, 6)]),
        (0, 6, 1, [(4, 5), (5, 6)]),
        (0, 8, 2, [(4, 6), (6, 8)]),
        (-3, 6, 4, [(-3, 0), (4, 6)]),
    ],
)
def test_of_another_range_what_is_missing_is_worked_on(
    begin: int, end: int, per_shard: int, missing: list[tuple[int, int]]
) -> None:
    outputs = Outputs(a_batch(0, 6, 2))
    assert pieces(outputs.resumed(begin=begin, end=end, per_shard=per_shard)) == missing


def test_an_output_of_what_is_no_longer_in_the_range_is_refused() -> None:
    told = Outputs(a_batch(0, 6, 2)).refused(begin=1)
    assert told.startswith("out/part-0 was made of 0 to 2, and batch.inputs.range is from 1 to 6")


def test_an_output_of_an_input_that_is_gone_is_refused_by_its_name() -> None:
    told = Outputs(listed(2, MANIFEST), "abcdef").refused("abdef")
    assert told.startswith("out/part-1 was made of c, which inputs.txt does not name any more")


def test_an_input_that_has_changed_is_refused_by_its_name() -> None:
    outputs = Outputs(listed(2, MANIFEST), "abcdef", ["11111111"] * 6)
    told = outputs.refused("abcdef", ["11111111", "22222222", *["11111111"] * 4])
    assert told.startswith("b has changed since out/part-0 was made of it: remove out/part-0")


def test_an_input_of_which_no_stamp_is_known_is_known_by_its_name() -> None:
    outputs = Outputs(listed(2, MANIFEST), "abcdef", ["11111111"] * 6)
    assert names(outputs.resumed("abcdef", ["--------"] * 6)) == ["e", "f"]


def test_outputs_of_a_range_are_no_outputs_of_a_listing() -> None:
    told = Outputs(a_batch(0, 6, 2)).refused("abcdef", listing=MANIFEST)
    assert told.startswith("out/part-0 was made of 0 to 2, and inputs are listed at inputs.txt")


def test_an_output_without_a_record_is_refused_by_its_name() -> None:
    outputs = Outputs(a_batch(0, 6, 2))
    outputs.records.clear()
    assert outputs.refused().startswith("out/part-0 is there, and there is no record of the inputs")


def test_an_output_behind_the_last_shard_counts_as_one_of_the_batch() -> None:
    with pytest.raises(WorkloadError, match="1 output of this batch is there already, such as"):
        producer_of(a_batch(0, 200), existing=["out/part-2"])


def test_a_resumed_batch_that_was_killed_goes_on_with_what_is_new() -> None:
    outputs = Outputs(listed(2, MANIFEST), "abcdef")
    first, second = outputs.resumed("xyabcdef")
    again = producer_of(
        outputs.spec,
        [KeptUnit(0, first.payload)],
        inputs="xyabcdef",
        existing=[*outputs.names, first.payload["output"]],
        records=outputs.records,
    )
    assert [unit.payload for unit in again.next(1, 9).units] == [second.payload]


@pytest.mark.parametrize(
    ("listing", "output", "inputs"),
    [
        (PREFIX, f"{PREFIX}out/{{index}}", [f"{PREFIX}a"]),
        ("s3://bucket/3/", "s3://bucket/{index}/out", ["s3://bucket/3/a"]),
        (MANIFEST, "out/part-{index}", ["a", "out/part-7"]),
    ],
)
def test_an_output_among_the_inputs_is_refused(
    listing: str, output: str, inputs: list[str]
) -> None:
    with pytest.raises(WorkloadError, match=r"would be inputs|is an output of this batch"):
        producer_of(BatchSpec(output=output, per_shard=2, listing=listing), inputs=inputs)
