"""boto3 as the runner brings it along: what is packed, and what becomes of it in a sandbox."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dcos_tensorflow.task import bundle
from dcos_tensorflow.task.pack import build_zipapp

#: Makes clients as the engines do, in a Python that sees nothing of this one's packages.
CLIENTS = """
import sys
sys.path.insert(0, sys.argv[1])
from dcos_tensorflow.task import bundle
print(bundle.activate(sys.argv[2]))
import boto3
session = boto3.session.Session(aws_access_key_id="id", aws_secret_access_key="key")
for service in ("s3", "logs", "sts"):
    client = session.client(service, region_name="eu-west-1")
    print(client.meta.endpoint_url)
s3 = session.client("s3", region_name="eu-west-1")
print(s3.generate_presigned_url("get_object", {"Bucket": "images", "Key": "cat"}).partition("?")[0])
print(boto3.__file__)
import dcos_tensorflow.task.storage.task_storage
"""


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return build_zipapp(tmp_path_factory.mktemp("runner") / "runner.pyz", storage=True)


def names_in(runner):
    with zipfile.ZipFile(runner) as archive:
        return archive.namelist()


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={"AWS_EC2_METADATA_DISABLED": "true", **environment},
        timeout=60,
    )


def test_the_same_sources_give_the_same_bytes(runner, tmp_path):
    again = build_zipapp(tmp_path / "again.pyz", storage=True)
    assert again.read_bytes() == runner.read_bytes()


def test_the_small_runner_has_none_of_it(tmp_path):
    names = names_in(build_zipapp(tmp_path / "small.pyz"))
    assert not [
        name for name in names if name.startswith(("libraries", "dcos_tensorflow/task/storage/"))
    ]


def test_only_services_that_are_used_are_described(runner):
    data = [n.split("/")[3] for n in names_in(runner) if n.startswith("libraries/botocore/data/")]
    assert {name for name in data if "." not in name} == {"logs", "s3", "sts"}


def test_services_are_described_to_boto3_and_not_to_people(runner):
    with zipfile.ZipFile(runner) as archive:
        described = [
            json.loads(archive.read(name))
            for name in archive.namelist()
            if name.endswith("/service-2.json")
        ]
    operations = [one for service in described for one in service["operations"].values()]
    assert {"PutObject", "PutLogEvents", "AssumeRole"} <= {one["name"] for one in operations}
    assert not [one for one in operations if one.get("documentation")]


def test_all_regions_are_known(runner):
    with zipfile.ZipFile(runner) as archive:
        endpoints = json.loads(archive.read("libraries/botocore/data/endpoints.json"))
    partitions = {partition["partition"]: partition for partition in endpoints["partitions"]}
    assert {"aws", "aws-cn", "aws-us-gov"} <= set(partitions)
    assert "eu-west-1" in partitions["aws"]["regions"]


def test_it_is_pure_python(runner):
    suffixes = {Path(name).suffix for name in names_in(runner)}
    assert suffixes == {".py", ".pyc", ".marshal", ".json", ".pem"}


def test_it_is_small_enough_to_fetch_for_every_task(runner):
    assert runner.stat().st_size < 1_900_000


def test_a_python_without_boto3_makes_clients_with_it(runner, tmp_path):
    ended = run(CLIENTS, runner, tmp_path)
    assert ended.stderr == ""
    said, *endpoints, file = ended.stdout.splitlines()
    assert said.endswith("which the task runner brings along")
    assert endpoints == [
        "https://s3.eu-west-1.amazonaws.com",
        "https://logs.eu-west-1.amazonaws.com",
        "https://sts.eu-west-1.amazonaws.com",
        "https://images.s3.amazonaws.com/cat",
    ]
    assert file.startswith(f"{tmp_path}/.task-runner/libraries-")


def test_what_is_unpacked_is_used_again(runner, tmp_path):
    code = CLIENTS.partition("import boto3")[0]
    run(code, runner, tmp_path)
    (folder,) = (tmp_path / ".task-runner").iterdir()
    (folder / "mark").touch()
    assert run(code, runner, tmp_path).returncode == 0
    assert [path.name for path in (tmp_path / ".task-runner").iterdir()] == [folder.name]
    assert (folder / "mark").exists()


def test_an_unpacking_that_was_cut_is_none(runner, tmp_path):
    code = CLIENTS.partition("import boto3")[0]
    (tmp_path / ".task-runner" / "libraries-0.1" / "libraries" / "boto3").mkdir(parents=True)
    assert run(code, runner, tmp_path).returncode == 0
    assert len([p for p in (tmp_path / ".task-runner").iterdir() if "." not in p.name]) == 1


def refusal(runner, sandbox, before=""):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        f"from dcos_tensorflow.task import bundle\n{before}\n"
        "try:\n    bundle.activate(sys.argv[2])\n"
        "except bundle.BundleError as error:\n    print(error); print(error.hint)\n"
    )
    ended = run(code, runner, sandbox)
    assert ended.stderr == ""
    return ended.stdout.splitlines()


def test_a_python_that_is_too_old_is_refused_by_name(runner, tmp_path):
    told, hint = refusal(runner, tmp_path, "sys.version_info = (3, 9, 1)")
    assert told.startswith("S3 needs Python 3.10 or newer in the task, and ")
    assert told.endswith("is Python 3.9")
    assert hint.startswith("use an image or environment of a newer Python")


def test_a_python_that_is_too_old_may_have_a_boto3_of_its_own(runner, tmp_path):
    (tmp_path / "boto3.py").touch()
    ended = run(
        "import sys; sys.path[:0] = sys.argv[1:]; sys.version_info = (3, 9, 1)\n"
        "from dcos_tensorflow.task import bundle; print(bundle.activate(sys.argv[2]))",
        runner,
        tmp_path,
    )
    assert ended.stdout == f"boto3 of {sys.executable}\n"


def test_a_sandbox_that_cannot_be_written_to_is_told(runner, tmp_path):
    (tmp_path / ".task-runner").write_text("a file")
    told, hint = refusal(runner, tmp_path)
    assert told.startswith(f"boto3 cannot be unpacked into {tmp_path}/.task-runner: ")
    assert hint


def test_a_runner_without_it_uses_that_of_its_python_and_says_when_there_is_none(tmp_path):
    small = build_zipapp(tmp_path / "small.pyz")
    told, hint = refusal(small, tmp_path)
    assert told == "this Python has no boto3, and this task runner brings none along"
    assert hint.startswith("install boto3")


def test_from_its_sources_the_runner_uses_the_boto3_that_is_installed(tmp_path):
    assert bundle.activate(str(tmp_path)) == f"boto3 of {sys.executable}"
    assert os.listdir(tmp_path) == []
