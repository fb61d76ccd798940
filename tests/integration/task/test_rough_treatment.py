"""What a user's process, a full machine or a stranger at the port may do to the runner."""

import os
import shutil
import signal
import socket
import struct
from pathlib import Path

import pytest

from processes import alive
from waiting import eventually

READY = "print('ready', flush=True)\n"
WAIT = READY + "import time\nwhile True: time.sleep(60)\n"


def running(start, source=WAIT, **spec):
    task = start(source, **spec)
    task.wait_for_text("ready")
    task.wait_for_state("running")
    return task


def process_state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_frozen_process_wakes_to_be_stopped(start):
    handler = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
    task = running(start, handler + WAIT, grace_seconds=15)
    pid = task.status()["pid"]
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: process_state(pid) == "T", what="the process is frozen")
    task.process.terminate()
    assert task.wait() == 5


#: Padded, with open brackets, deep, huge, and no text.
ODD_LINES = (
    "step" + " " * 3990,
    "result: {'a': " + "[" * 3000,
    'result: {"a": ' + "[" * 1900 + "]" * 1900 + "}",
    "step " + "9" * 3900,
    "\\xff\\xfe\\x00\\x1b[31m loss nan",
)


def test_no_line_stops_the_reading(start):
    odd = "".join(f"os.write(1, b'''{line}\\n''')\n" for line in ODD_LINES)
    task = running(start, f"import os\n{odd}print('step 7 loss 0.5')\n" + WAIT)
    # What is printed is passed on first, and read then.
    eventually(lambda: task.status()["progress"]["step"] == 7, what="the step")


@pytest.mark.parametrize(
    "act",
    [
        "os.mkfifo(path)",
        "os.mkdir(path)",
        "os.symlink('/dev/zero', path)",
        "open(path, 'wb').write(os.urandom(3_000_000))",
        "open(path, 'w').write('{\"step\": ' + '9' * 400 + '}\\n')",
        "open(path, 'w').write('{\"result\": ' + '[' * 9000 + ']' * 9000 + '}\\n')",
        "open(path, 'w').truncate(20_000_000_000)",
    ],
    ids=["pipe", "directory", "device", "garbage", "huge number", "deep", "gigabytes"],
)
def test_nothing_in_the_place_of_the_progress_file_stops_the_task(start, act):
    source = f"import os, time\npath = os.environ['PROGRESS_FILE']\n{act}\n{READY}"
    task = running(start, source + "while not os.path.exists('end'): time.sleep(0.02)\n")
    assert task.status()["state"] == "running"
    (task.sandbox / "end").touch()
    assert task.wait() == 0


def test_the_end_of_a_progress_file_of_gigabytes_is_read(start):
    source = (
        "import os\n"
        "with open(os.environ['PROGRESS_FILE'], 'wb') as file:\n"
        "    file.truncate(5_000_000_000)\n"
        "    file.seek(0, 2)\n"
        '    file.write(b\'\\n{"step": 9, "result": {"accuracy": 1}}\\n\')\n'
    )
    task = start(source)
    assert task.wait() == 0
    assert task.report()["result"] == {"accuracy": 1}


def test_a_process_that_closes_its_output_goes_on_and_keeps_its_exit_code(start):
    source = "import os\nos.close(1)\nos.close(2)\nopen('closed', 'w').close()\n"
    task = start(source + "import time\ntime.sleep(0.5)\nos._exit(3)\n")
    assert task.wait() == 3


def test_five_hundred_children_that_ignore_sigterm_are_gone_at_the_end(start):
    command = "trap '' TERM; for i in $(seq 500); do sleep 600 & done; jobs -p > pids; echo ready; "
    task = start(job={"command": command + "wait"}, grace_seconds=0.2)
    task.wait_for_text("ready")
    pids = [int(pid) for pid in task.text("pids").split()]
    task.process.terminate()
    assert task.wait() == 137
    assert len(pids) == 500
    assert not any(map(alive, pids))


def test_a_task_whose_sandbox_is_removed_goes_on_and_can_be_stopped(start):
    task = running(start)
    shutil.rmtree(task.sandbox)
    assert task.status()["state"] == "running"
    assert task.request("POST", "/v1/stop")[0] == 202
    assert task.wait() == 143


def test_a_task_whose_sandbox_is_removed_says_so_when_it_must_start_again(start):
    task = running(start)
    shutil.rmtree(task.sandbox)
    assert task.order(2)[0] == 200
    assert task.wait() == 71


@pytest.mark.parametrize("name", ["X-Task-Time", "Content-Length"])
def test_a_number_of_thousands_of_digits_is_refused(start, name):
    task = running(start)
    number = "9" * 5000
    with socket.create_connection(("127.0.0.1", task.port), timeout=10) as connection:
        request = f"GET /v1/status HTTP/1.1\r\nX-Task-Signature: x\r\n{name}: {number}\r\n\r\n"
        connection.sendall(request.encode())
        answer = connection.recv(4096)
    assert answer.split()[1] in (b"400", b"401")


def test_half_a_request_is_let_go_when_its_sender_is(start):
    task = running(start)
    with socket.create_connection(("127.0.0.1", task.port), timeout=10) as connection:
        connection.sendall(b"PUT /v1/cluster HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
    assert task.status()["state"] == "running"


def test_connections_that_say_nothing_keep_no_client_out(start):
    task = running(start)
    held = [socket.create_connection(("127.0.0.1", task.port), timeout=10) for _ in range(40)]
    try:
        assert task.status()["state"] == "running"
        # The first ones had to make room.
        assert held[0].recv(1) == b""
    finally:
        for connection in held:
            connection.close()


def test_connections_that_break_fill_no_log(start):
    task = running(start)
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", task.port), timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nContent-Length: 10\r\n\r\n")
            # Closed with a reset: to read from it is an error there.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    task.wait_for_text("request from", "stderr")
    task.status()
    assert task.text("stderr").count("request from") == 1
