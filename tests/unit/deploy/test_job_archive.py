"""Packing a job's code."""

import errno
import hashlib
import os
import tarfile
import zipfile

import pytest

from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.deploy.job import job_archive
from dcos_tensorflow.deploy.job.job_archive import check_sum, unpack
from dcos_tensorflow.scheduler.gate import Allowed, Gate

EVERYTHING = Allowed(everything=True)
NOTHING = Gate()


def pack(source, target, *, apart=(), gate=NOTHING):
    return job_archive.pack(source, target, apart=apart, gate=gate)


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "job"
    (folder / "lib").mkdir(parents=True)
    (folder / "train.py").write_text("print('step 1')\n")
    (folder / "lib" / "model.py").write_text("LAYERS = 2\n")
    return folder


def names(archive):
    with zipfile.ZipFile(archive) as opened:
        return sorted(opened.namelist())


def test_a_folder_s_content_stands_at_the_top(job, tmp_path):
    assert names(pack(job, tmp_path / "out.zip")) == ["lib/model.py", "train.py"]


def test_the_same_files_give_the_same_bytes(job, tmp_path):
    first = pack(job, tmp_path / "first.zip").read_bytes()
    for path in job.rglob("*.py"):
        os.utime(path, (1, 1))
    assert pack(job, tmp_path / "second.zip").read_bytes() == first


@pytest.mark.parametrize("name", [".git", ".venv", "__pycache__", "lib/__pycache__", "my-venv"])
def test_what_is_not_the_job_s_code_stays_out(job, tmp_path, name):
    (job / name).mkdir()
    (job / name / "something").write_text("x")
    (job / name / "pyvenv.cfg").write_text("x")
    assert names(pack(job, tmp_path / "out.zip")) == ["lib/model.py", "train.py"]


def test_a_program_stays_executable(job, tmp_path):
    (job / "run.sh").write_text("#!/bin/sh\n")
    (job / "run.sh").chmod(0o755)
    with zipfile.ZipFile(pack(job, tmp_path / "out.zip")) as opened:
        assert opened.getinfo("run.sh").external_attr >> 16 & 0o111


def test_a_single_file_is_packed_alone(job, tmp_path):
    assert names(pack(job / "train.py", tmp_path / "out.zip")) == ["train.py"]


def test_an_archive_is_taken_as_it_is(job, tmp_path):
    archive = pack(job, tmp_path / "mnist.zip")
    assert pack(archive, tmp_path / "out.zip") == archive


def test_a_link_to_nowhere_is_left_out(job, tmp_path):
    (job / "broken").symlink_to("nowhere")
    assert "broken" not in names(pack(job, tmp_path / "out.zip"))


def test_a_linked_folder_is_packed_like_any_other_where_links_may_lead_to_it(job, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "layers.py").write_text("x")
    (job / "common").symlink_to(tmp_path / "shared")
    (job / "lib" / "common").symlink_to("../common")
    expected = ["common/layers.py", "lib/common/layers.py", "lib/model.py", "train.py"]
    for allowed in (Allowed(links=(tmp_path / "shared",)), EVERYTHING):
        assert names(pack(job, tmp_path / "out.zip", gate=Gate(allowed))) == expected


@pytest.mark.parametrize("link", ["key", "lib/key", "secrets"])
def test_a_link_that_leads_out_of_the_folder_is_refused_by_its_name(job, tmp_path, link):
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "id_rsa").write_text("hush")
    (job / link).symlink_to(secrets if link == "secrets" else secrets / "id_rsa")
    with pytest.raises(UsageError, match=rf"{link} leads to .*--job-links-to {secrets}\.$"):
        pack(job, tmp_path / "out.zip", gate=Gate(Allowed(links=(tmp_path / "job",))))


def test_a_name_that_is_not_utf_8_is_refused(job, tmp_path):
    (job / os.fsdecode(b"n\xff")).touch()
    with pytest.raises(UsageError, match=r"the name of n\\udcff in .* is not UTF-8"):
        pack(job, tmp_path / "job.zip")


@pytest.mark.parametrize("target", ["/proc/self/environ", "/proc/self", "/sys/kernel"])
def test_what_the_kernel_shows_is_packed_nowhere(job, tmp_path, target):
    (job / "env").symlink_to(target)
    with pytest.raises(UsageError, match="is the kernel's"):
        pack(job, tmp_path / "out.zip", gate=Gate(EVERYTHING))
    with pytest.raises(UsageError, match="is the kernel's"):
        pack(job / "env", tmp_path / "out.zip", gate=Gate(EVERYTHING))


@pytest.mark.parametrize("target", [".", "..", "lib"])
def test_a_link_that_leads_back_is_not_followed_for_ever(job, tmp_path, target):
    (job / "lib" / "again").symlink_to(job / target)
    found = names(pack(job, tmp_path / "out.zip", gate=Gate(EVERYTHING)))
    assert set(found) >= {"lib/model.py", "train.py"}
    assert len(found) < 10


def test_what_the_command_keeps_itself_is_no_part_of_a_job_around_it(job, tmp_path):
    work = job / ".local/share/dcos-tensorflow"
    (work / "services/mnist/artifacts").mkdir(parents=True)
    (work / "services/mnist/artifacts/job-1.zip").write_text("x")
    (job / ".local/share/mine.txt").write_text("x")
    (job / "link").symlink_to(work)
    found = names(pack(job, tmp_path / "out.zip", apart=[work]))
    assert found == [".local/share/mine.txt", "lib/model.py", "train.py"]


def test_a_job_in_the_commands_own_folder_is_one_all_the_same(job, tmp_path):
    assert "train.py" in names(pack(job, tmp_path / "out.zip", apart=[tmp_path]))


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read_is_named(job, tmp_path):
    (job / "lib").chmod(0)
    with pytest.raises(CliError, match="lib cannot be packed: Permission denied"):
        pack(job, tmp_path / "out.zip")


def test_a_disk_that_is_full_is_told_with_what_was_packed_and_where_to(job, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    target = tmp_path / "out.zip"
    with pytest.raises(CliError, match=f"{job}, into {target}, cannot be packed: No space left"):
        pack(job, target)


def test_more_than_a_job_can_be_is_refused_before_all_of_it_is_looked_at(
    job, tmp_path, monkeypatch
):
    monkeypatch.setattr(job_archive, "MAX_BYTES", 1000)
    (job / "lib" / "data.bin").write_bytes(bytes(2000))
    with pytest.raises(UsageError, match=r"a large file is lib/data\.bin"):
        pack(job, tmp_path / "out.zip")


def test_a_missing_path_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"service\.job_url: there is no file or folder .*nowhere"):
        pack(tmp_path / "nowhere", tmp_path / "out.zip")


def test_an_empty_folder_is_no_job(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="there is no file in"):
        pack(tmp_path / "empty", tmp_path / "out.zip")


def test_a_zip_that_is_none_is_refused(tmp_path):
    (tmp_path / "job.zip").write_text("hello")
    with pytest.raises(UsageError, match="is not a zip file"):
        pack(tmp_path / "job.zip", tmp_path / "out.zip")


def test_a_zip_and_a_tar_archive_can_be_looked_into(job, tmp_path):
    with tarfile.open(tmp_path / "job.TAR.gz", "w:gz") as archive:
        archive.add(job / "train.py", "train.py")
    unpack(tmp_path / "job.TAR.gz", tmp_path / "tar")
    unpack(pack(job, tmp_path / "job.zip"), tmp_path / "zip")
    assert (tmp_path / "tar" / "train.py").exists()
    assert (tmp_path / "zip" / "lib" / "model.py").exists()


@pytest.mark.parametrize("name", ["job.zip", "job.tar", "job.tar.gz", "job.txz", "job.tbz2"])
@pytest.mark.parametrize("content", [b"", b"no archive at all"])
def test_an_archive_that_is_none_is_refused_by_name(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=rf"service\.job_url: .*{name} is not a"):
        unpack(tmp_path / name, tmp_path / "out")


def test_an_archive_that_is_cut_off_is_refused(job, tmp_path):
    whole = tmp_path / "whole.tar.gz"
    with tarfile.open(whole, "w:gz") as archive:
        archive.add(job, "job")
    (tmp_path / "job.tar.gz").write_bytes(whole.read_bytes()[:100])
    with pytest.raises(UsageError, match=r"service\.job_url: .*job\.tar\.gz"):
        unpack(tmp_path / "job.tar.gz", tmp_path / "out")


def test_an_archive_with_another_sum_is_refused_before_the_start(tmp_path):
    (tmp_path / "job.zip").write_bytes(b"x")
    check_sum(tmp_path / "job.zip", hashlib.sha256(b"x").hexdigest())
    with pytest.raises(UsageError, match=r"the SHA-256 of .*job\.zip is 2d711642"):
        check_sum(tmp_path / "job.zip", "0" * 64)


def test_what_is_packed_here_can_have_no_sum(job):
    with pytest.raises(UsageError, match="leave the option out"):
        check_sum(job, "0" * 64)
