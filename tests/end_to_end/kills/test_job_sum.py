"""A job that is fetched with a sum, on a real cluster: the right file runs, another one never."""

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import CommandLine, Ended, write_options
from servers.web_server import served_folder

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """Serve a job that writes a file wherever it is run, and return where."""
    folder = tmp_path / "served"
    folder.mkdir()
    with zipfile.ZipFile(folder / "job.zip", "w") as archive:
        archive.writestr("train.py", f"open({str(tmp_path / 'has-run')!r}, 'w').write('yes')\n")
    with served_folder(folder) as url:
        yield f"{url}/job.zip"


def run(cluster: CommandLine, folder: Path, name: str, url: str, checksum: str) -> Ended:
    service = {"name": name, "job_url": url, "job_name": "train", "job_sha256": checksum}
    return cluster.ask("run", write_options(folder, service={**service, "strategy": "independent"}))


def test_the_file_that_is_meant_runs(
    local_cluster: CommandLine, tmp_path: Path, served: str
) -> None:
    right = hashlib.sha256((tmp_path / "served" / "job.zip").read_bytes()).hexdigest()
    ended = run(local_cluster, tmp_path, "the-right-sum", served, right)
    assert ended.code == 0, ended.out
    assert (tmp_path / "has-run").exists()


def test_another_file_ends_the_job_at_its_first_try(
    local_cluster: CommandLine, tmp_path: Path, served: str
) -> None:
    wrong = hashlib.sha256(b"what was meant").hexdigest()
    ended = run(local_cluster, tmp_path, "another-sum", served, wrong)
    assert ended.code == 78, ended.out
    assert "is not the file that service.job_sha256 names" in ended.out
    assert "cluster version 2" not in ended.out
    assert not (tmp_path / "has-run").exists()
    # Nothing of it lies in the sandbox, neither as it came nor unpacked.
    logs = [path for path in local_cluster.home.rglob("stderr") if "another-sum" in str(path)]
    sandboxes = [path.resolve().parent for path in logs]
    assert sandboxes
    left = {path.name for sandbox in sandboxes for path in sandbox.iterdir()}
    assert not left & {"job.unchecked", "job.zip", "train.py"}
