"""What a job wants to be installed: read, and told from what is the same."""

import pytest

from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.task.python.python_packages import (
    Base,
    Packages,
    key_of,
    pinned_tensorflow,
    requirements_wanted,
    tensorflow_requirement,
    tf_keras_requirement,
)
from samples.wheels import make_wheel

BARE = Base("/usr/bin/python3", ())


def wanted(job, *lines):
    return requirements_wanted(lines, BARE, [str(job)], str(job))


def key(job, *lines):
    return key_of(BARE, wanted(job, *lines))


def with_tensorflow(folder, name, version):
    """Return a Python in which a TensorFlow is said to be installed."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return Base("/usr/bin/python3", (str(folder),))


@pytest.mark.parametrize(
    "other",
    [
        ["pandas==2.0", "scipy"],
        ["scipy", "Pandas == 2.0   # for the tables"],
        ["", "# nothing", "scipy", "pandas==2.0"],
    ],
)
def test_the_same_requirements_are_the_same_environment(tmp_path, other):
    lines = Packages(requirements="\n".join(other)).lines
    assert key(tmp_path, *lines) == key(tmp_path, "scipy", "pandas==2.0")


def test_a_file_and_its_lines_are_the_same_environment(tmp_path):
    (tmp_path / "requirements.txt").write_text("-r lib/more.txt\nscipy \\\n  >=1\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "more.txt").write_text("pandas\n")
    assert key(tmp_path, "-r requirements.txt") == key(tmp_path, "pandas", "scipy>=1")


def test_another_constraint_is_another_environment(tmp_path):
    (tmp_path / "known.txt").write_text("numpy<2\n")
    before = key(tmp_path, "pandas", "-c known.txt")
    assert before not in (key(tmp_path, "pandas"), key(tmp_path, "pandas", "numpy<2"))
    (tmp_path / "known.txt").write_text("numpy<3\n")
    assert key(tmp_path, "pandas", "-c known.txt") != before


def test_other_wheels_are_another_environment(tmp_path):
    before = key(tmp_path, "shapes")
    make_wheel(tmp_path / "wheels", "shapes", "1.0")
    first = key(tmp_path, "shapes")
    make_wheel(tmp_path / "wheels", "shapes", "1.0", code="# mended")
    assert len({before, first, key(tmp_path, "shapes")}) == 3


def test_a_package_of_the_job_counts_by_its_code(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "setup.py").write_text("1")
    before = key(tmp_path, "./lib")
    (tmp_path / "lib" / "setup.py").write_text("2")
    assert key(tmp_path, "./lib") != before


def test_another_python_is_another_environment(tmp_path):
    one = with_tensorflow(tmp_path / "one", "tensorflow-cpu", "2.15.1")
    other = with_tensorflow(tmp_path / "two", "tensorflow-cpu", "2.21.0")
    keys = {
        key_of(base, requirements_wanted(["pandas"], base, [str(tmp_path)], str(tmp_path)))
        for base in (BARE, one, other)
    }
    assert len(keys) == 3


@pytest.mark.parametrize("name", ["tensorflow", "tensorflow-cpu", "tf-nightly"])
def test_the_tensorflow_that_is_there_stays(tmp_path, name):
    base = with_tensorflow(tmp_path / "packages", name, "2.15.1")
    found = requirements_wanted(["pandas"], base, [str(tmp_path)], str(tmp_path))
    assert found.lines == ("pandas", "tensorflow==2.15.1")


def test_a_file_is_looked_for_in_the_folders_of_the_code(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "requirements.txt").write_text("pandas\n")
    roots = [str(tmp_path / "nowhere"), str(tmp_path / "code"), str(tmp_path)]
    found = requirements_wanted(["-r requirements.txt"], BARE, roots, str(tmp_path))
    assert found.lines == (f"-r {tmp_path}/requirements.txt",)
    assert found.folder == str(tmp_path / "code")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("-r nowhere.txt", "names nowhere.txt, and the job has no such file"),
        ("-e .", "would install files of the sandbox"),
        ("-r circle.txt", "includes itself"),
    ],
)
def test_what_no_task_could_install_is_refused(tmp_path, line, why):
    (tmp_path / "circle.txt").write_text("-r circle.txt\n")
    with pytest.raises(JobUnusable, match=why):
        wanted(tmp_path, line)


@pytest.mark.parametrize(
    ("version", "gpus", "machine", "requirement"),
    [
        ("2.15.1", 0, "x86_64", "tensorflow-cpu==2.15.1"),
        ("2.15.1", 0, "aarch64", "tensorflow==2.15.1"),
        ("2.15.1", 1, "x86_64", "tensorflow[and-cuda]==2.15.1"),
        ("2.13.0", 1, "x86_64", "tensorflow==2.13.0"),
    ],
)
def test_tensorflow_is_the_build_for_the_task(version, gpus, machine, requirement):
    assert tensorflow_requirement(version, gpus, machine) == requirement


def test_tf_keras_is_that_of_the_tensorflow():
    assert tf_keras_requirement("2.19.1") == "tf_keras==2.19.*"


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("tensorflow==2.15.1", "2.15.1"),
        ("TensorFlow[and-cuda] == 2.15.1 ; python_version < '3.12'", "2.15.1"),
        ("tensorflow-cpu==2.21.0", "2.21.0"),
        ("tensorflow>=2.15", ""),
        ("tensorflow-datasets==4.9.3", ""),
        ("tensorflow==2.*", ""),
    ],
)
def test_only_an_exact_version_of_tensorflow_is_named(tmp_path, line, version):
    assert pinned_tensorflow(wanted(tmp_path, line).content) == version
