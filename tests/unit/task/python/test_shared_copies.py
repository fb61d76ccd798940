"""What the tasks of a machine share: made once, kept while it is used, bounded."""

import os
import subprocess
import sys
import threading
import time

import pytest

from dcos_tensorflow.task.python.shared_copies import Copies, UnsafeFolder, own_folder
from waiting import eventually

SIGN = ".whole"


@pytest.fixture(params=["", SIGN])
def sign(request):
    """Copies that are moved to their place, and copies that are made there."""
    return request.param


def folder(tmp_path, sign="", **bounds):
    return Copies(str(tmp_path), wait=time.sleep, log=lambda text: None, sign=sign, **bounds)


def writes(text, made=None):
    def make(path):
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "text"), "w", encoding="utf-8") as file:
            file.write(text)
        if made is not None:
            made.append(text)

    return make


def copies_in(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir() if path.is_dir())


def test_many_at_once_make_it_once(tmp_path, sign):
    made, taken = [], []

    def take():
        taken.append(folder(tmp_path, sign).take("a", writes("x", made)))

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["x"]
    assert {one.path for one in taken} == {str(tmp_path / "a")}


def test_a_maker_that_fails_leaves_nothing_that_passes_for_whole(tmp_path, sign):
    def fails(path):
        writes("half")(path)
        raise RuntimeError("no")

    copies = folder(tmp_path, sign)
    with pytest.raises(RuntimeError):
        copies.take("a", fails)
    assert not copies.holds("a")
    copies.take("a", writes("whole")).let_go()
    assert (tmp_path / "a" / "text").read_text() == "whole"


def test_one_that_was_killed_in_the_middle_leaves_nothing_that_passes_for_whole(tmp_path, sign):
    code = f"""
import os, time
from dcos_tensorflow.task.python.shared_copies import Copies
def make(path):
    os.makedirs(path)
    open(os.path.join(path, "half"), "w").close()
    time.sleep(600)
Copies({str(tmp_path)!r}, wait=time.sleep, log=print, sign={sign!r}).take("a", make)
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    eventually(lambda: list(tmp_path.glob("a*/half")), what="a copy that is begun")
    process.kill()
    process.wait()
    copies = folder(tmp_path, sign)
    assert not copies.holds("a")
    copies.take("a", writes("whole")).let_go()
    assert (tmp_path / "a" / "text").read_text() == "whole"
    assert not sign or not (tmp_path / "a" / "half").exists()


def test_too_many_give_way_to_a_new_one_the_oldest_first(tmp_path, sign):
    copies = folder(tmp_path, sign, max_number=2)
    for age, name in enumerate(("a", "b"), 1):
        copies.take(name, writes(name)).let_go()
        os.utime(tmp_path / name, (age, age))
    copies.take("a", writes("again")).let_go()
    copies.take("c", writes("c")).let_go()
    assert copies_in(tmp_path) == ["a", "c"]


def test_too_large_ones_give_way_to_a_new_one(tmp_path, sign):
    copies = folder(tmp_path, sign, max_bytes=1500)
    for age, name in enumerate(("a", "b"), 1):
        copies.take(name, writes("x" * 1000)).let_go()
        os.utime(tmp_path / name, (age, age))
    assert copies_in(tmp_path) == ["a", "b"]
    copies.take("c", writes("x"), coming=1000).let_go()
    assert copies_in(tmp_path) == ["c"]


def test_what_is_used_stays(tmp_path, sign):
    copies = folder(tmp_path, sign, max_number=1)
    used = copies.take("a", writes("a"))
    copies.take("b", writes("b")).let_go()
    assert copies_in(tmp_path) == ["a", "b"]
    used.let_go()
    copies.take("c", writes("c")).let_go()
    assert copies_in(tmp_path) == ["c"]


def test_a_task_that_waits_for_another_can_be_stopped(tmp_path, sign):
    class Stopped(Exception):
        pass

    def stop(seconds):
        raise Stopped

    begun, end = threading.Event(), threading.Event()

    def make(path):
        os.makedirs(path)
        begun.set()
        end.wait(30)

    other = threading.Thread(target=lambda: folder(tmp_path, sign).take("a", make))
    other.start()
    begun.wait(30)
    with pytest.raises(Stopped):
        Copies(str(tmp_path), wait=stop, log=print, sign=sign).take("a", writes("x"))
    end.set()
    other.join()


class TestOwnFolder:
    """Other users of the machine come first, and know the name."""

    STRANGER = 64_002

    def theirs(self, path):
        if os.geteuid() != 0:
            pytest.skip("only root can make files of another user")
        os.lchown(path, self.STRANGER, self.STRANGER)

    def test_is_made_for_this_user_alone_and_found_again(self, tmp_path):
        path = own_folder(str(tmp_path / "shared" / "ours"))
        assert os.stat(path).st_mode & 0o777 == 0o700
        assert own_folder(path) == path

    def test_is_no_folder_of_a_stranger(self, tmp_path):
        (tmp_path / "ours").mkdir()
        self.theirs(tmp_path / "ours")
        with pytest.raises(UnsafeFolder, match="is not a folder of user"):
            own_folder(str(tmp_path / "ours"))

    def test_is_no_link(self, tmp_path):
        (tmp_path / "other").mkdir()
        (tmp_path / "ours").symlink_to(tmp_path / "other")
        with pytest.raises(UnsafeFolder):
            own_folder(str(tmp_path / "ours"))

    def test_is_none_that_others_may_write_into(self, tmp_path):
        (tmp_path / "ours").mkdir()
        (tmp_path / "ours").chmod(0o777)
        with pytest.raises(UnsafeFolder, match="may write into"):
            own_folder(str(tmp_path / "ours"))

    def test_lies_where_no_stranger_could_put_another_in_its_place(self, tmp_path):
        above = tmp_path / "shared"
        above.mkdir()
        above.chmod(0o777)
        with pytest.raises(UnsafeFolder, match="every user may write to it"):
            own_folder(str(above / "ours"))
        above.chmod(0o1777)
        assert own_folder(str(above / "ours"))
        self.theirs(above)
        with pytest.raises(UnsafeFolder, match=f"it is user {self.STRANGER}'s"):
            own_folder(str(above / "ours"))

    def test_a_lock_that_is_a_link_is_not_opened(self, tmp_path):
        private = tmp_path / "private"
        private.write_text("hush")
        copies = folder(tmp_path / "ours")
        (tmp_path / "ours").mkdir()
        (tmp_path / "ours" / "a.lock").symlink_to(private)
        with pytest.raises(OSError, match="symbolic"):
            copies.take("a", writes("x"))
        assert private.read_text() == "hush"
