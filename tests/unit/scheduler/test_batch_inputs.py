"""What a batch finds in folders and manifests; S3's part is in the integration tests."""

from dataclasses import replace
from pathlib import Path

import pytest

from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.scheduler.batch_inputs import NO_INPUTS, list_inputs
from dcos_tensorflow.scheduler.gate import Allowed, Gate
from dcos_tensorflow.workloads.producer import WorkloadError
from simulated.scheduler import small_job

ANYTHING = Gate(Allowed(everything=True))


def a_batch(folder: Path, listing: str = "", output: str = "part-{index:02}.txt") -> ServiceSpec:
    work = BatchSpec(output=str(folder / output), per_shard=2, end=8, listing=listing)
    return replace(small_job(), workload=work)


def test_a_service_that_is_no_batch_finds_nothing() -> None:
    assert list_inputs(small_job(), {}, ANYTHING) is NO_INPUTS


def test_the_lines_of_a_manifest_are_inputs_and_empty_ones_are_not(tmp_path: Path) -> None:
    manifest = tmp_path / "inputs.txt"
    manifest.write_text("b.png\n\n  a.png \nc d.png")
    assert list_inputs(a_batch(tmp_path, str(manifest)), {}, ANYTHING).listed == [
        "b.png",
        "a.png",
        "c d.png",
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "No such file"), (b"\xff\xfe", "UTF-8"), (b"\n \n", "nothing is listed")],
)
def test_a_manifest_that_cannot_be_read_is_told_by_its_name(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    manifest = tmp_path / "inputs.txt"
    if content is not None:
        manifest.write_bytes(content)
    with pytest.raises(WorkloadError, match=why) as raised:
        list_inputs(a_batch(tmp_path, str(manifest)), {}, ANYTHING)
    assert str(manifest) in str(raised.value)


@pytest.mark.parametrize(
    ("output", "there"),
    [
        ("part-{index:02}.txt", "part-03.txt"),
        ("out/{index}/table", "out/7/table"),
        ("[odd] name-{index}", "[odd] name-1"),
        (".hidden-{index}", ".hidden-1"),
    ],
)
def test_outputs_that_are_there_are_found(tmp_path: Path, output: str, there: str) -> None:
    file = tmp_path / there
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    (tmp_path / "another").touch()
    assert list_inputs(a_batch(tmp_path, output=output), {}, ANYTHING).existing == {str(file)}


def test_of_a_folder_that_is_not_there_yet_no_output_is_found(tmp_path: Path) -> None:
    assert not list_inputs(a_batch(tmp_path / "new"), {}, ANYTHING).existing


def resumed(service: ServiceSpec) -> ServiceSpec:
    assert isinstance(service.workload, BatchSpec)
    return replace(service, workload=replace(service.workload, resume=True))


def test_the_records_of_outputs_are_read_when_a_batch_goes_on(tmp_path: Path) -> None:
    for name, record in [("part-01.txt", '{"begin": 2, "end": 4}'), ("part-02.txt", "half {")]:
        (tmp_path / name).touch()
        (tmp_path / ".shards").mkdir(exist_ok=True)
        (tmp_path / ".shards" / f"{name}.json").write_text(record)
    (tmp_path / "part-03.txt").touch()
    found = list_inputs(resumed(a_batch(tmp_path)), {}, ANYTHING)
    assert found.records == {str(tmp_path / "part-01.txt"): {"begin": 2, "end": 4}}


def stamps(folder: Path, gate: Gate = ANYTHING) -> list[str]:
    return list(list_inputs(a_batch(folder, str(folder / "inputs.txt")), {}, gate).stamps)


def test_a_file_that_a_manifest_names_has_another_stamp_when_it_has_changed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("1")
    (tmp_path / "inputs.txt").write_text(f"{tmp_path}/a\n{tmp_path}/b\nrelative\n/nowhere\n")
    before = stamps(tmp_path)
    (tmp_path / "b").write_text("12")
    after = stamps(tmp_path)
    assert [len(stamp) for stamp in before] == [8] * 4
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False] + [
        True
    ] * 2
    assert before[2:] == ["--------"] * 2


def test_files_of_a_machine_whose_files_the_author_may_not_see_have_no_stamp(
    tmp_path: Path,
) -> None:
    (tmp_path / "inputs.txt").write_text(f"{tmp_path}/inputs.txt\n")
    assert stamps(tmp_path, Gate(Allowed(folder=tmp_path))) == ["--------"]
