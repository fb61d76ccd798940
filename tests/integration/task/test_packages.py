"""What a task needs beside its Python is installed before it starts, once for all of a machine.

Wheels that are made here stand for the packages of an index; uv and pip are real, but where a test
says otherwise.
"""

import os
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from dcos_tensorflow.task.python.package_installer import Installer, InstallFailed
from dcos_tensorflow.task.python.python_environments import (
    ready,
    shared_environments,
    users_directory,
)
from dcos_tensorflow.task.python.python_packages import (
    Base,
    EnvironmentSpec,
    requirements_wanted,
    this_python,
)
from processes import alive
from samples.wheels import make_wheel
from waiting import eventually

SHOW = "import shapes, sys; print(shapes.VERSION, sys.prefix)\n"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    make_wheel(folder, "shapes", "1.2")
    return folder


@pytest.fixture
def offline(tmp_path: Path, wheels: Path) -> dict[str, str]:
    """The variables of a task that finds packages in a folder, and asks no index."""
    return {
        "HOME": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
    }


def wants(tmp_path: Path, *lines: str, **others: str) -> dict[str, str]:
    (tmp_path / "cache").mkdir(exist_ok=True)
    return {"requirements": "\n".join(lines), "directory": str(tmp_path / "cache"), **others}


def environments_in(tmp_path: Path) -> list[Path]:
    return list(Path(users_directory(str(tmp_path / "cache"))).glob("*/.whole"))


def test_tasks_of_a_machine_share_an_environment_that_is_made_once(start, tmp_path, offline):
    tasks = [
        start(SHOW, variables=offline, packages=wants(tmp_path, "shapes>=1")) for _ in range(2)
    ]
    assert [task.wait() for task in tasks] == [0, 0], tasks[0].text("stderr")
    (whole,) = environments_in(tmp_path)
    assert {task.text() for task in tasks} == {f"1.2 {whole.parent}\n"}
    told = "".join(task.text("stderr") for task in tasks)
    assert "Makes an environment with service.requirements, once for this machine" in told
    assert told.count("Successfully installed shapes-1.2") == 1
    place = Path(users_directory(str(tmp_path / "cache")))
    assert place.stat().st_mode & 0o777 == 0o700


def test_what_can_never_be_installed_ends_the_task_with_the_installers_words(
    start, tmp_path, offline
):
    packages = wants(tmp_path, "shapes==9")
    task = start(SHOW, variables=offline, packages=packages, hold_on_failure=True)
    assert task.wait() == 78
    report = task.report()
    assert report["class"] == "job_unusable"
    assert report["summary"] == (
        "service.requirements cannot be installed: No matching distribution found for shapes==9"
    )
    assert any("from versions: 1.2" in line for line in report["last_lines"])
    assert environments_in(tmp_path) == []


def test_an_index_that_does_not_answer_is_asked_again_by_the_next_start(
    start, tmp_path, wheels, offline
):
    away = {**offline, "PIP_NO_INDEX": "0", "PIP_FIND_LINKS": ""}
    away["PIP_INDEX_URL"] = "http://me:s3cret@127.0.0.1:1/simple"
    packages = {"requirements": f"--find-links={tmp_path}/later\nshapes"}
    task = start(SHOW, variables=away, packages=packages, hold_on_failure=True)
    status = task.wait_for_state("failed")
    assert (status["exit"]["class"], status["exit"]["code"]) == ("storage", 74)
    assert "the package index does not answer" in status["summary"]
    assert "s3cret" not in task.text("stderr")
    wheels.rename(tmp_path / "later")
    task.order(2)
    assert task.wait() == 0, task.text("stderr")
    # No folder is shared: the task has its own environment.
    assert str(task.sandbox / ".environments") in task.text()


def test_tensorflow_of_the_version_is_brought_with_the_keras_that_the_code_needs(
    start, tmp_path, wheels, offline
):
    make_wheel(wheels, "tensorflow-cpu", "9.9.1", requires=["shapes<2"])
    make_wheel(wheels, "tensorboard", "9.0")
    make_wheel(wheels, "tf_keras", "9.9.3", requires=["tensorflow>=9.9,<9.10"])
    # Of this, only the last line runs.
    job = textwrap.dedent(
        """
        import importlib, os

        def train(data):
            import tensorflow as tf

            with tf.distribute.MultiWorkerMirroredStrategy().scope():
                model = tf.keras.Sequential()
            model.fit(data, epochs=2)

        there = [importlib.import_module(n).VERSION for n in ("tensorflow_cpu", "tf" + "_keras")]
        print(*there, os.environ["TF_USE_" + "LEGACY_KERAS"])
        """
    )
    task = start(job, variables=offline, packages=wants(tmp_path, tensorflow="9.9.1"))
    assert task.wait() == 0, task.text("stderr")
    assert task.text() == "9.9.1 9.9.3 1\n"
    assert "calls fit under a strategy of several processes" in task.text("stderr")
    # TensorFlow in one, what lies over it in the other.
    assert len(environments_in(tmp_path)) == 2


@pytest.fixture
def slow_uv(tmp_path: Path) -> dict[str, str]:
    """An uv that says its pid and never comes to an end."""
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/uv-pid\nexec sleep 600\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def pid_of_uv(tmp_path: Path) -> int:
    file = tmp_path / "uv-pid"
    eventually(lambda: file.exists() and file.read_text().endswith("\n"), what="an uv that runs")
    return int(file.read_text())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_task_that_ends_meanwhile_leaves_nothing_half(start, tmp_path, offline, slow_uv, number):
    packages = wants(tmp_path, "shapes")
    task = start(SHOW, variables=slow_uv, packages=packages)
    pid = pid_of_uv(tmp_path)
    status = task.wait_for_state("preparing")
    assert status["summary"].startswith("Makes an environment with service.requirements")
    task.process.send_signal(number)
    task.wait()
    eventually(lambda: not alive(pid), what="the end of uv")
    assert environments_in(tmp_path) == []
    if number == signal.SIGKILL:
        other = start(SHOW, variables=offline, packages=packages)
        assert other.wait() == 0, other.text("stderr")


def test_a_folder_of_another_user_is_not_used(start, tmp_path, offline):
    packages = wants(tmp_path, "shapes")
    other = tmp_path / "theirs"
    other.mkdir()
    Path(users_directory(packages["directory"])).symlink_to(other)
    task = start(SHOW, variables=offline, packages=packages)
    assert task.wait() == 78
    assert "files of another user are not used" in task.report()["summary"]


@pytest.fixture
def installer(offline: dict[str, str]) -> Installer:
    return Installer({"PATH": os.defpath, **offline}, lambda line: None)


@pytest.fixture
def tensorflow(tmp_path: Path, wheels: Path, installer: Installer) -> Base:
    """A Python with a tensorflow-cpu that needs shapes before 2."""
    make_wheel(wheels, "tensorflow-cpu", "9.9.1", requires=["shapes<2"])
    make_wheel(wheels, "shapes", "2.0")
    lines = ("tensorflow-cpu",)
    wanted = EnvironmentSpec("TensorFlow", lines, lines, str(tmp_path), alone=True)
    copies = shared_environments(str(tmp_path / "shared"), installer, print)
    return ready(copies, this_python(), wanted, installer)[0]


def test_requirements_lie_over_tensorflow_and_leave_it_as_it_is(
    tmp_path, tensorflow, installer, wheels
):
    job = tmp_path / "job"
    make_wheel(job / "wheels", "model-zoo", "1.0", requires=["tensorflow>9", "shapes"])
    copies = shared_environments(str(tmp_path / "shared"), installer, print)

    def made(*lines: str) -> Base:
        wanted = requirements_wanted(lines, tensorflow, [str(job)], str(job))
        return ready(copies, tensorflow, wanted, installer)[0]

    over = made("model-zoo")
    assert sorted(path.name for path in Path(over.folders[0]).glob("*.dist-info")) == [
        "model_zoo-1.0.dist-info"
    ]
    assert over.tensorflow() == ("tensorflow-cpu", "9.9.1")
    assert over.version_of("shapes") == "1.2"
    with pytest.raises(
        InstallFailed, match=r"shapes==2\.0, tensorflow 9\.9\.1 depends on shapes<2"
    ):
        made("model-zoo", "shapes==2.0")


@pytest.mark.soak
def test_a_package_of_the_index_is_installed(start, tmp_path):
    """With uv where it is there, else with pip, from where this machine gets its packages."""
    inherited = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    packages = wants(tmp_path, "iniconfig==2.0.0")
    source = "import iniconfig; print(iniconfig.__file__)\n"
    task = start(source, variables={**inherited, "HOME": str(tmp_path)}, packages=packages)
    assert task.wait() == 0, task.text("stderr")
    assert users_directory(packages["directory"]) in task.text()
    assert sys.prefix not in task.text()
