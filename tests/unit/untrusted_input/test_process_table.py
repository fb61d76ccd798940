"""Which processes are the user's."""

import os
import signal
import subprocess

import pytest

from untrusted_input import process_table
from untrusted_input.process_table import (
    Process,
    belonging,
    below,
    descendants_of,
    only_children,
    only_children_of,
    read_process,
)
from waiting import eventually


def pids(processes, first, spared=frozenset()):
    return {process.pid for process in belonging(processes, set(first), set(spared))}


def test_descendants_belong():
    table = [Process(2, 1, 2, 2, "S"), Process(3, 2, 2, 2, "S"), Process(4, 3, 2, 2, "S")]
    assert pids(table, {2}) == {2, 3, 4}


def test_members_of_its_group_belong_when_their_parent_is_gone():
    table = [Process(3, 1, 2, 2, "S")]
    assert pids(table, {2}) == {3}


def test_members_of_its_session_belong_in_a_group_of_their_own():
    table = [Process(2, 1, 2, 2, "S"), Process(9, 1, 9, 2, "S")]
    assert pids(table, {2}) == {2, 9}


def test_strangers_do_not_belong():
    table = [Process(2, 1, 2, 2, "S"), Process(7, 1, 7, 7, "S")]
    assert pids(table, {2}) == {2}


def test_spared_processes_and_what_they_lead_do_not_belong():
    table = [Process(2, 1, 2, 2, "S"), Process(5, 1, 5, 5, "S"), Process(6, 5, 5, 5, "S")]
    assert pids(table, {2, 5}, {5}) == {2}


def test_zombies_are_dead_already():
    assert pids([Process(2, 1, 2, 2, "Z"), Process(3, 2, 2, 2, "S")], {2}) == {3}


def test_a_shell_and_what_it_waits_for_are_a_chain():
    table = [Process(2, 1, 2, 2, "S"), Process(3, 2, 2, 2, "S"), Process(4, 3, 2, 2, "T")]
    assert only_children(table, 2) == [2, 3, 4]


def test_the_chain_ends_where_there_are_several():
    table = [Process(3, 2, 2, 2, "S"), Process(4, 2, 2, 2, "S"), Process(5, 4, 2, 2, "Z")]
    assert only_children(table, 2) == [2]
    assert only_children(table, 4) == [4]


def test_parents_come_before_what_they_have_started():
    table = [Process(4, 3, 2, 2, "S"), Process(3, 2, 2, 2, "S"), Process(7, 1, 7, 7, "S")]
    assert [process.pid for process in below(table, 2)] == [3, 4]


def test_a_process_is_told_from_a_later_one_of_its_id_by_its_start():
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        mine, ended = read_process(os.getpid()), read_process(child.pid)
    assert (mine.ended, ended.ended) == (False, True)
    assert 0 < mine.started <= ended.started
    assert read_process(child.pid) is None


def test_the_command_of_a_shell_is_found_where_the_shell_waits_for_it() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 600; true"], start_new_session=True) as shell:
        try:
            chain = eventually(lambda: only_children_of(shell.pid)[1:])
            found = [read_process(pid) for pid in chain]
            assert [process and process.parent for process in found] == [shell.pid]
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


@pytest.mark.parametrize("tells_children", [True, False])
def test_descendants_are_found_with_or_without_a_kernel_that_tells_children(
    monkeypatch: pytest.MonkeyPatch, tells_children: bool
) -> None:
    if not tells_children:
        monkeypatch.setattr(process_table, "children_of", lambda pid: None)
    command = ["sh", "-c", "sh -c 'sleep 600; true'; true"]
    with subprocess.Popen(command, start_new_session=True) as shell:
        try:
            found = eventually(lambda: descendants_of(shell.pid)[1:] and descendants_of(shell.pid))
            assert [process.parent for process in found] == [shell.pid, found[0].pid]
            assert descendants_of(shell.pid, but={found[0].pid}) == []
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
