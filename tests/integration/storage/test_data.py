"""Data comes into the sandbox: verified, and once per agent."""

import errno
import fcntl
import os
import shutil
import threading

import pytest

from dcos_tensorflow.task.python import shared_copies
from dcos_tensorflow.task.python.shared_copies import users_folder
from dcos_tensorflow.task.storage.data import fetch_data
from dcos_tensorflow.task.storage.s3 import objects
from dcos_tensorflow.task.storage.s3.errors import StorageError
from dcos_tensorflow.task.storage.status import Transfer
from dcos_tensorflow.task.storage_spec import DataCachePlace, DataItem
from servers.s3_server import Fault

ITEM = DataItem("s3://bucket/mnist", "data/mnist")


@pytest.fixture
def mnist(s3):
    """Ten objects in two folders."""
    for number in range(10):
        put(s3, f"mnist/part-{number % 2}/{number}.rec", bytes([number]) * 1000)
    s3.requests.clear()
    return s3


def put(s3, key: str, body: bytes) -> None:
    s3.client.put_object(Bucket="bucket", Key=key, Body=body)


def put_in_parts(s3, key: str, *parts: bytes) -> None:
    upload = s3.client.create_multipart_upload(Bucket="bucket", Key=key)["UploadId"]
    done = [
        {
            "PartNumber": number,
            "ETag": s3.client.upload_part(
                Bucket="bucket", Key=key, UploadId=upload, PartNumber=number, Body=part
            )["ETag"],
        }
        for number, part in enumerate(parts, 1)
    ]
    s3.client.complete_multipart_upload(
        Bucket="bucket", Key=key, UploadId=upload, MultipartUpload={"Parts": done}
    )


def test_a_prefix_becomes_a_folder(engines, mnist, tmp_path):
    (fetched,) = fetch_data([ITEM], str(tmp_path), engines.connection())
    assert (fetched.files, fetched.size) == (10, 10_000)
    assert (tmp_path / "data/mnist/part-1/3.rec").read_bytes() == bytes([3]) * 1000


def test_how_much_has_come_is_told(engines, s3, tmp_path):
    told = []

    class Watched(Transfer):
        def add(self, count: int) -> None:
            super().add(count)
            told.append(self.told())

    for number in range(2):
        put(s3, f"mnist/{number}.rec", bytes(1_000_000))
    connection = engines.connection()
    connection.arrival = Watched()
    fetch_data([ITEM], str(tmp_path), connection)
    assert "Brings data: 100 % of 2.0 MB" in told
    assert len({*told}) > 1


def test_one_object_keeps_its_name(engines, mnist, tmp_path):
    item = DataItem("s3://bucket/mnist/part-0/2.rec", "one")
    fetch_data([item], str(tmp_path), engines.connection())
    assert os.listdir(tmp_path / "one") == ["2.rec"]


def test_a_name_that_only_begins_like_the_prefix_is_not_meant(engines, s3, mnist, tmp_path):
    put(s3, "mnist-labels", b"x")
    assert fetch_data([ITEM], str(tmp_path), engines.connection())[0].files == 10


def test_what_is_there_already_is_not_fetched_again(engines, mnist, tmp_path):
    fetch_data([ITEM], str(tmp_path), engines.connection())
    assert fetch_data([ITEM], str(tmp_path), engines.connection())[0].bytes_fetched == 0


def own(cache):
    """Return the folder of copies of this user."""
    return users_folder(cache.directory, "data")


def test_the_tasks_of_an_agent_share_one_copy(engines, mnist, tmp_path):
    cache = DataCachePlace(str(tmp_path / "cache"))
    fetched = []

    def task(number: int) -> None:
        fetched.extend(
            fetch_data([ITEM], str(tmp_path / f"task-{number}"), engines.connection(), cache)
        )

    tasks = [threading.Thread(target=task, args=(number,)) for number in range(4)]
    for thread in tasks:
        thread.start()
    for thread in tasks:
        thread.join()
    assert sum(one.bytes_fetched for one in fetched) == 10_000
    for number in range(4):
        path = tmp_path / f"task-{number}/data/mnist/part-1/3.rec"
        assert path.read_bytes() == bytes([3]) * 1000


def test_a_changed_source_is_another_copy(engines, s3, mnist, tmp_path):
    cache = DataCachePlace(str(tmp_path / "cache"))
    fetch_data([ITEM], str(tmp_path / "a"), engines.connection(), cache)
    put(s3, "mnist/part-1/3.rec", b"new")
    fetch_data([ITEM], str(tmp_path / "b"), engines.connection(), cache)
    assert (tmp_path / "b/data/mnist/part-1/3.rec").read_bytes() == b"new"
    assert (tmp_path / "a/data/mnist/part-1/3.rec").read_bytes() == bytes([3]) * 1000


@pytest.fixture
def another_file_system(monkeypatch):
    """The cache lies on another file system than the sandboxes: there are no hard links."""

    def link(source, path):
        raise OSError(errno.EXDEV, "Invalid cross-device link", path)

    monkeypatch.setattr(os, "link", link)


def cached(s3, engines, cache, name, folder):
    """Fetch an object of 1000 bytes through the cache."""
    put(s3, f"{name}/x", name.encode() * 1000)
    (found,) = fetch_data(
        [DataItem(f"s3://bucket/{name}", name)], str(folder), engines.connection(), cache
    )
    return found


def test_what_a_running_task_points_to_stays_in_a_full_cache(
    engines, s3, tmp_path, another_file_system
):
    cache = DataCachePlace(str(tmp_path / "cache"), max_bytes=1500)
    running = cached(s3, engines, cache, "a", tmp_path)
    cached(s3, engines, cache, "b", tmp_path)
    assert (tmp_path / "a/x").read_bytes() == b"a" * 1000
    # As when its process ends.
    os.close(running.lock)
    cached(s3, engines, cache, "c", tmp_path)
    assert not (tmp_path / "a/x").exists()
    assert (tmp_path / "b/x").exists()


def test_a_copy_that_one_task_points_to_serves_the_next_at_once(
    engines, s3, tmp_path, another_file_system
):
    cache = DataCachePlace(str(tmp_path / "cache"))
    for task in ("one", "two"):
        cached(s3, engines, cache, "a", tmp_path / task)
        assert (tmp_path / task / "a/x").read_bytes() == b"a" * 1000


def test_a_copy_that_was_removed_meanwhile_is_fetched_again(
    engines, s3, tmp_path, another_file_system
):
    cache = DataCachePlace(str(tmp_path / "cache"), max_bytes=1500)
    os.close(cached(s3, engines, cache, "a", tmp_path / "one").lock)
    cached(s3, engines, cache, "b", tmp_path)
    found = cached(s3, engines, cache, "a", tmp_path / "two")
    assert found.bytes_fetched == 1000
    assert (tmp_path / "two/a/x").read_bytes() == b"a" * 1000


def test_a_byte_that_the_network_changed_is_fetched_again(engines, mnist, tmp_path):
    once = iter([Fault(corrupt=True)])
    mnist.fault = lambda request: next(once, None) if "3.rec" in request.path else None
    fetch_data([ITEM], str(tmp_path), engines.connection())
    assert (tmp_path / "data/mnist/part-1/3.rec").read_bytes() == bytes([3]) * 1000


def test_an_object_that_stays_wrong_is_refused(engines, mnist, tmp_path):
    mnist.fault = lambda request: Fault(corrupt=True) if "3.rec" in request.path else None
    with pytest.raises(StorageError, match=r"3\.rec"):
        fetch_data([ITEM], str(tmp_path), engines.connection())
    assert not (tmp_path / "data/mnist/part-1/3.rec").exists()


@pytest.mark.parametrize("corrupt", [False, True])
def test_an_object_of_several_parts_is_verified(engines, s3, tmp_path, monkeypatch, corrupt):
    monkeypatch.setattr(objects, "SPAN", 500)
    put_in_parts(s3, "mnist/big", b"a" * 1000, b"b" * 1000, b"c" * 10)
    s3.fault = lambda request: (
        Fault(corrupt=True)
        if corrupt and "bytes=1000" in request.headers.get("RANGE", "")
        else None
    )
    if corrupt:
        with pytest.raises(StorageError, match="not what S3 says"):
            fetch_data([ITEM], str(tmp_path), engines.connection())
        return
    fetch_data([ITEM], str(tmp_path), engines.connection())
    assert (tmp_path / "data/mnist/big").read_bytes() == b"a" * 1000 + b"b" * 1000 + b"c" * 10
    assert not any("checked by size" in line for line in engines.log)


def test_an_object_that_is_replaced_meanwhile_is_not_mixed(engines, s3, tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "SPAN", 500)
    put(s3, "mnist/x", b"old" * 400)

    def replace(request):
        if "bytes=500" in request.headers.get("RANGE", ""):
            s3.fault = lambda request: None
            put(s3, "mnist/x", b"new" * 400)

    s3.fault = replace
    with pytest.raises(StorageError, match="replaced"):
        fetch_data([ITEM], str(tmp_path), engines.connection(threads=1))


def test_a_source_without_objects_is_an_error(engines, tmp_path):
    with pytest.raises(StorageError, match="has no objects"):
        fetch_data([DataItem("s3://bucket/none", "x")], str(tmp_path), engines.connection())


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x"])
def test_data_never_leaves_the_sandbox(engines, mnist, tmp_path, path):
    with pytest.raises(StorageError, match="leaves the sandbox"):
        fetch_data([DataItem(ITEM.uri, path)], str(tmp_path), engines.connection())


def test_an_object_whose_key_leads_out_is_refused(engines, s3, tmp_path):
    put(s3, "mnist//etc", b"x")
    with pytest.raises(StorageError, match="no file"):
        fetch_data([ITEM], str(tmp_path), engines.connection())


STRANGER = 64_002


@pytest.fixture
def stranger(tmp_path):
    """Another user of the machine, who comes first and puts things where tasks share theirs."""
    if os.geteuid() != 0:
        pytest.skip("only root can make files of another user")
    cache = DataCachePlace(str(tmp_path / "cache"))

    def puts(folder):
        os.makedirs(folder, exist_ok=True)
        for path in (folder, *(os.path.join(folder, name) for name in os.listdir(folder))):
            os.lchown(path, STRANGER, STRANGER)

    return cache, puts


def test_what_a_stranger_has_made_under_the_name_of_the_folder_is_not_trained_on(
    engines, mnist, tmp_path, stranger
):
    cache, puts = stranger
    fetch_data([ITEM], str(tmp_path / "before"), engines.connection(), cache)
    puts(own(cache))
    (found,) = fetch_data([ITEM], str(tmp_path / "task"), engines.connection(), cache)
    assert found.bytes_fetched == 10_000
    assert any("is not a folder of user 0" in line for line in engines.log)
    assert (tmp_path / "task/data/mnist/part-1/3.rec").read_bytes() == bytes([3]) * 1000


def test_a_copy_of_a_stranger_in_this_users_folder_is_none(engines, mnist, tmp_path, stranger):
    cache, puts = stranger
    fetch_data([ITEM], str(tmp_path / "before"), engines.connection(), cache)
    (copy,) = [name for name in os.listdir(own(cache)) if not name.endswith(".lock")]
    puts(os.path.join(own(cache), copy))
    with pytest.raises(StorageError):
        fetch_data([ITEM], str(tmp_path / "task"), engines.connection(), cache)


def test_no_link_in_a_copy_is_written_through(engines, mnist, tmp_path):
    private = tmp_path / "private"
    private.write_text("hush")
    sandbox = tmp_path / "task"
    place = sandbox / "data/mnist/part-1"
    place.mkdir(parents=True)
    (place / "3.rec.part").symlink_to(private)
    with pytest.raises(StorageError):
        fetch_data([ITEM], str(sandbox), engines.connection())
    assert private.read_text() == "hush"


def test_a_copy_that_another_task_holds_for_ever_is_not_waited_for(
    engines, mnist, tmp_path, monkeypatch
):
    cache = DataCachePlace(str(tmp_path / "cache"))
    fetch_data([ITEM], str(tmp_path / "before"), engines.connection(), cache)
    (copy,) = [name for name in os.listdir(own(cache)) if not name.endswith(".lock")]
    shutil.rmtree(os.path.join(own(cache), copy))
    monkeypatch.setattr(shared_copies, "STILL_SECONDS", 0.5)
    with open(os.path.join(own(cache), f"{copy}.lock")) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        (found,) = fetch_data([ITEM], str(tmp_path / "task"), engines.connection(), cache)
    assert found.bytes_fetched == 10_000
    assert any(f"process {os.getpid()} in " in line for line in engines.log)
