"""Input data of this machine: linked here, packed for any other cluster."""

import sys
import zipfile

import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.spec.service_spec import LinkedData
from dcos_tensorflow.deploy.job import job_archive
from dcos_tensorflow.deploy.job.preparation import changed_spec, prepare
from dcos_tensorflow.options import load


@pytest.fixture
def directory(tmp_path):
    return WorkDirectory(tmp_path / "work").service("job")


@pytest.fixture
def options(tmp_path):
    """Return a function that loads options with some data, beside a job with images."""
    (tmp_path / "images" / "cats").mkdir(parents=True)
    (tmp_path / "images" / "cats" / "1.png").write_bytes(b"cat")
    (tmp_path / "labels.csv").write_text("cat\n")
    (tmp_path / "train.py").write_text("print(1)\n")

    def made(*data, **service):
        file = tmp_path / "options.json"
        file.write_text("{}")
        loaded = load(
            {
                "service": {
                    "job_url": ".",
                    "job_name": "train",
                    "python": sys.executable,
                    **service,
                },
                "parameter_server": {"count": 0},
                "data": [{"uri": uri, "path": path} for uri, path in data],
            }
        )
        loaded._base_directory = tmp_path
        return loaded

    return made


def test_a_folder_beside_the_options_is_linked_on_this_machine(options, directory, tmp_path):
    prepared = prepare(options(("./images", "images")), directory, {}, local=True)
    assert prepared.spec.job.links == (LinkedData(str(tmp_path / "images"), "images"),)
    assert prepared.data is None


def test_data_is_not_packed_with_the_code(options, directory):
    asked = options(("./images", "images"), ("labels.csv", "data"))
    archive = prepare(asked, directory, {}, local=True).archive
    assert sorted(zipfile.ZipFile(archive).namelist()) == ["options.json", "train.py"]


def test_it_is_packed_for_another_cluster_where_tasks_find_it(options, directory):
    asked = options(("./images", "input/images"), ("labels.csv", "data"))
    prepared = prepare(asked, directory, {}, local=False)
    names = sorted(zipfile.ZipFile(prepared.data).namelist())
    assert names == ["data/labels.csv", "input/images/cats/1.png"]


def test_more_than_a_task_can_fetch_is_refused_with_the_other_ways(options, directory, monkeypatch):
    monkeypatch.setattr(job_archive, "MAX_BYTES", 5)
    asked = options(("./images", "images"), job_url="")
    asked_larger = options(("labels.csv", "a"), ("./images", "images"), job_url="")
    prepare(asked, directory, {}, local=False)
    with pytest.raises(UsageError, match=r"s3://bucket/prefix.*share, and give its absolute path"):
        prepare(asked_larger, directory, {}, local=False)


def test_an_absolute_path_is_one_of_the_tasks_machines(options, directory):
    prepared = prepare(options(("/mnt/images", "images")), directory, {}, local=False)
    assert prepared.spec.job.links == (LinkedData("/mnt/images", "images"),)
    assert prepared.data is None


def test_a_container_sees_an_absolute_path(options, directory):
    asked = options(("/mnt/images", "images"), ("./images", "here"), python="", tf_image="me/mine")
    (worker,) = prepare(asked, directory, {}, local=False).spec.roles
    assert worker.container.host_directories == ("/mnt/images",)


@pytest.mark.parametrize("local", [True, False])
def test_data_that_is_not_there_is_named_by_its_option(options, directory, local):
    with pytest.raises(UsageError, match=r"^data\.0\.uri: there is no file or folder .*/nowhere"):
        prepare(options(("nowhere", "images")), directory, {}, local=local)


def test_other_data_needs_a_scheduler_that_starts_again(options, directory):
    running = prepare(options(), directory, {}, local=False).spec
    with pytest.raises(Exception, match="start it again with these options"):
        changed_spec(options(("./images", "images")), directory, {}, running, local=False)


def test_a_scheduler_that_is_started_again_may_have_other_data(options, directory):
    running = prepare(options(), directory, {}, local=False).spec
    asked = options(("./images", "images"))
    found = changed_spec(asked, directory, {}, running, local=False, restarted=True)
    assert [link.path for link in found.job.links] == ["images"]
