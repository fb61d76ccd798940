"""A leadership ends once, and a holder is called dead only when it surely is."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from dcos_tensorflow.state.errors import BadStatePath
from dcos_tensorflow.state.layout import folder_name
from dcos_tensorflow.state.leadership import UNKNOWN_HOLDER, Holder, Leadership, this_process


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def leadership(calls: list[str]) -> Leadership:
    return Leadership(UNKNOWN_HOLDER, lambda: calls.append("released"), calls.append)


def test_a_loss_is_told_once(leadership: Leadership, calls: list[str]) -> None:
    leadership.lose("first")
    leadership.lose("second")
    leadership.release()
    assert calls == ["first"]


def test_a_release_is_done_once_and_no_loss_follows(
    leadership: Leadership, calls: list[str]
) -> None:
    with leadership:
        leadership.release()
    leadership.lose("too late")
    assert calls == ["released"]


def test_a_failing_handler_of_the_loss_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(why: str) -> None:
        raise ValueError(why)

    Leadership(UNKNOWN_HOLDER, lambda: None, fail).lose("gone")
    assert "ValueError: gone" in caplog.text


def test_a_holder_survives_its_own_encoding() -> None:
    holder = this_process("scheduler")
    assert Holder.from_bytes(holder.to_bytes()) == holder


@pytest.mark.parametrize("data", [b"", b"x", b"{}", b"[]", b'{"pid": 1}', b"\xff"])
def test_anything_else_in_the_lock_is_an_unknown_holder(data: bytes) -> None:
    assert Holder.from_bytes(data) == UNKNOWN_HOLDER


def test_a_living_process_is_not_dead() -> None:
    assert not this_process("me").surely_dead()


def test_a_process_of_another_machine_is_never_called_dead() -> None:
    assert not replace(this_process("me"), machine="other", pid=999_999_999).surely_dead()


def test_a_process_that_ended_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert replace(this_process("me"), pid=process.pid).surely_dead()


def test_another_process_with_the_same_pid_does_not_keep_the_holder_alive() -> None:
    assert replace(this_process("me"), process_start="1").surely_dead()


def test_processes_of_other_users_are_looked_up_too() -> None:
    init = 1
    assert os.getpid() != init
    assert replace(this_process("me"), pid=init, process_start="-1").surely_dead()


@pytest.mark.parametrize(
    ("service", "folder"),
    [("tf", "tf"), ("/tf", "tf"), ("/team/tf", "team__tf"), ("team/tf/", "team__tf")],
)
def test_service_names_become_one_folder(service: str, folder: str) -> None:
    assert folder_name(service) == folder


@pytest.mark.parametrize("service", ["", "/", ".", "..", "a\nb"])
def test_service_names_without_a_folder_are_refused(service: str) -> None:
    with pytest.raises(BadStatePath, match="service name"):
        folder_name(service)
