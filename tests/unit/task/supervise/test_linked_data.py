"""Data of the task's machine is linked into its sandbox."""

import pytest

from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.task.spec import Link
from dcos_tensorflow.task.supervise.start_preparation import make_link


@pytest.fixture
def data(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.png").write_text("cat")
    (tmp_path / "labels.csv").write_text("cat")
    (tmp_path / "sandbox").mkdir()
    return tmp_path


def test_a_folder_is_found_at_its_path_again_and_again(data):
    for _ in range(2):
        make_link(Link(str(data / "images"), "input/images"), str(data / "sandbox"))
    assert (data / "sandbox/input/images/1.png").read_text() == "cat"


def test_a_file_is_found_by_its_own_name(data):
    make_link(Link(str(data / "labels.csv"), "tables"), str(data / "sandbox"))
    assert (data / "sandbox/tables/labels.csv").read_text() == "cat"


def test_what_is_not_on_the_machine_is_named(data):
    with pytest.raises(JobUnusable, match=r"no file or folder /nowhere/images on this machine"):
        make_link(Link("/nowhere/images", "images"), str(data / "sandbox"))


def test_what_the_job_has_brought_itself_is_not_replaced(data):
    (data / "sandbox" / "images").mkdir()
    with pytest.raises(JobUnusable, match="cannot be linked to images: File exists"):
        make_link(Link(str(data / "images"), "images"), str(data / "sandbox"))
