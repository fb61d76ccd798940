"""The files of a batch: what a folder and a pattern mean, and a list that stays as it is."""

import zipfile
from pathlib import Path

import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.deploy.job import listed_files
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.job.listed_files import listed, with_listed_files
from dcos_tensorflow.deploy.job.preparation import prepare
from dcos_tensorflow.options import Options, load
from samples.states import running, with_job


def options(folder: Path, files: str) -> Options:
    batch = {"inputs": {"files": files}, "output": "out/part-{index}"}
    return load({"service": {"job_cmd": "true"}, "batch": batch}, folder=folder)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv", ".hidden.csv", "c.txt", "deep/er/d.csv"):
        file = tmp_path / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ("data/*.csv", ["a.csv", "b.csv"]),
        ("./data/**/*.csv", ["a.csv", "b.csv", "deep/er/d.csv"]),
        ("data", ["a.csv", "b.csv", "c.txt", "deep/er/d.csv"]),
        ("data/", ["a.csv", "b.csv", "c.txt", "deep/er/d.csv"]),
        ("data/[ab].csv", ["a.csv", "b.csv"]),
    ],
)
def test_a_folder_and_a_pattern_are_files_in_order(
    data: Path, files: str, names: list[str]
) -> None:
    found = listed(options(data.parent, files), local=True)
    assert found == [str(data / name) for name in names]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ("data/*.png", "there is no file that matches {}/data/*.png"),
        ("empty", "there is no file in the folder {}/empty"),
        ("nowhere", "there is no file that matches {}/nowhere"),
        ("data/a.csv", "data/a.csv is one file"),
    ],
)
def test_where_there_is_no_file_the_pattern_is_refused_by_name(
    data: Path, files: str, told: str
) -> None:
    (data.parent / "empty").mkdir()
    with pytest.raises(UsageError) as refused:
        listed(options(data.parent, files), local=True)
    assert f"batch.inputs.files: {told.format(data.parent)}" in str(refused.value)


def test_a_name_that_is_no_line_is_refused(data: Path) -> None:
    (data / "two\nlines.csv").touch()
    with pytest.raises(UsageError, match="would be another one as a line of a list"):
        listed(options(data.parent, "data/*.csv"), local=True)


@pytest.mark.parametrize("files", ["{}/*.csv", "*/*.csv", "~/data", "../data", "."])
def test_other_machines_get_no_files_but_of_a_folder_beside_the_options(
    data: Path, files: str
) -> None:
    told = r"a folder beside the options.*batch\.inputs\.manifest.*batch\.inputs\.s3_prefix"
    with pytest.raises(UsageError, match=told):
        listed(options(data.parent, files.format(data)), local=False)


def test_more_than_tasks_should_fetch_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_files, "MAX_BYTES", 3)
    (data / "a.csv").write_text("1234")
    with pytest.raises(UsageError, match=r"of which every task would fetch all.*s3_prefix"):
        listed(options(data.parent, "data"), local=False)


@pytest.fixture
def directory(tmp_path: Path) -> ServiceDirectory:
    return WorkDirectory(tmp_path / "work").service("batch")


def manifest_of(data: Path, directory: ServiceDirectory, phase: JobPhase | None) -> Path:
    asked = options(data.parent, "data/*.csv")
    known = None if phase is None else with_job(running(), phase=phase)
    source = {"service": {"job_cmd": "true"}, "batch": {"output": "out/{index}"}}
    given = GivenOptions(source, folder=data.parent)
    found = with_listed_files(given, asked, directory, known, local=True)
    return Path(found.load().batch.inputs.manifest)


def test_a_list_stays_as_it_is_until_the_batch_has_ended(
    data: Path, directory: ServiceDirectory
) -> None:
    before = manifest_of(data, directory, None)
    first = before.read_text()
    (data / "aa.csv").touch()
    assert manifest_of(data, directory, JobPhase.RUNNING) == before
    assert before.read_text() == first == f"{data}/a.csv\n{data}/b.csv\n"
    assert manifest_of(data, directory, JobPhase.DONE) == before
    assert f"{data}/aa.csv" in before.read_text()


def test_a_scheduler_that_would_have_to_list_them_itself_is_told_what_to_give(
    data: Path, directory: ServiceDirectory
) -> None:
    with pytest.raises(UsageError, match="the command run makes a list of the files"):
        prepare(options(data.parent, "data"), directory, {}, local=True)


def test_for_other_machines_the_files_are_packed_as_data_and_listed_where_tasks_find_them(
    data: Path, directory: ServiceDirectory
) -> None:
    asked = options(data.parent, "./data/deep/**")
    source = {"service": {"job_cmd": "true"}, "batch": {"output": "/shared/{index}"}}
    given = GivenOptions(source, folder=data.parent)
    found = with_listed_files(given, asked, directory, None, local=False).load()
    assert [(item.uri, item.path) for item in found.data] == [("data/deep", "data/deep")]
    assert Path(found.batch.inputs.manifest).read_text() == "data/deep/er/d.csv\n"
    prepared = prepare(found, directory, {}, local=False)
    assert prepared.data is not None
    assert zipfile.ZipFile(prepared.data).namelist() == ["data/deep/er/d.csv"]
