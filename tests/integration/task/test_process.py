"""The user's process: how it is started, stopped, and cleaned up after."""

import glob
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dcos_tensorflow.task.supervise.guard import NAME
from processes import alive
from waiting import eventually

READY = "print('ready', flush=True)\n"
WAIT = READY + "import time\nwhile True: time.sleep(60)\n"
IGNORES_SIGTERM = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAIT
#: Starts a process that leaves group and session, and says its pid.
DAEMON = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)
open("daemon", "w").write(f"{child.pid}\\n")
"""


def children(pid: int) -> list[tuple[int, str]]:
    """Return pid and state of the children of ``pid``."""
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = Path(stat).read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append((int(stat.split("/")[2]), fields[0]))
    return found


@pytest.mark.parametrize("code", [0, 1, 3, 42])
def test_the_exit_code_is_that_of_the_process(start, code):
    task = start(f"raise SystemExit({code})")
    assert task.wait() == code
    assert task.report()["exit_code"] == code


def test_the_report_is_the_last_line_of_stderr_too(start):
    task = start("raise KeyError('x')")
    task.wait()
    report = task.report()
    assert (report["class"], report["summary"]) == ("user_error", "KeyError: 'x' (job.py, line 1)")
    assert "KeyError: 'x'" in report.pop("last_lines")
    assert report.pop("progress")["step"] is None
    assert json.loads(task.text("stderr").splitlines()[-1]) == report


def test_a_script_runs_as_the_main_program(start):
    source = "import sys; print(__name__, sys.argv, sys.path[0], flush=True)"
    task = start(source)
    task.wait()
    sandbox = str(task.sandbox)
    assert task.text().split(None, 1)[0] == "__main__"
    assert task.text().strip() == f"__main__ ['{sandbox}/job.py'] {sandbox}"


def test_a_command_runs_in_a_shell_in_the_sandbox_with_the_tasks_python(start):
    command = "python3 -c 'import sys; print(sys.executable)' && pwd && exit 7"
    task = start(job={"command": command})
    assert task.wait() == 7
    python, directory = task.text().split()
    assert Path(python).parent == Path(sys.executable).parent
    assert directory == str(task.sandbox)


def test_sigterm_reaches_the_process_and_its_exit_code_is_kept(start):
    handler = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
    task = start(handler + WAIT)
    task.wait_for_text("ready")
    task.process.terminate()
    assert task.wait() == 5
    assert (task.report()["class"], task.report()["summary"]) == (
        "interrupted",
        "Stopped: the task got SIGTERM",
    )


def test_sigint_stops_the_task_too(start):
    task = start(WAIT)
    task.wait_for_text("ready")
    task.process.send_signal(signal.SIGINT)
    assert task.wait() == 143


def test_sigterm_reaches_the_children_of_a_shell(start):
    task = start(job={"command": "sleep 600 & echo $! > child; wait; wait"})
    child = task.pid_in("child")
    task.process.terminate()
    task.wait()
    assert not alive(child)


def test_what_outlives_the_process_is_killed_with_it(start):
    task = start(DAEMON)
    assert task.wait() == 0
    assert not alive(task.pid_in("daemon"))


def test_orphans_leave_no_zombies(start):
    orphan = "(sh -c 'sleep 0.1' & ) ; "
    task = start(job={"command": f"{orphan * 5} echo ready; sleep 600"})
    task.wait_for_text("ready")
    eventually(
        lambda: not [pid for pid, state in children(task.process.pid) if state == "Z"],
        what="all zombies gone",
    )


@pytest.mark.parametrize(
    "job",
    [{"name": "job"}, {"command": "python3 job.py; echo not reached"}],
    ids=["script", "command"],
)
def test_the_death_of_the_runner_leaves_nothing_behind(start, job):
    task = start(
        DAEMON + "import os\nopen('pid', 'w').write(f'{os.getpid()}\\n')\n" + WAIT, job=job
    )
    pids = {task.pid_in("pid"), task.pid_in("daemon")}
    pids |= {pid for pid, _ in children(task.process.pid)}
    task.process.kill()
    task.process.wait()
    eventually(lambda: not any(map(alive, pids)), what=f"all of {pids} gone")


def test_a_guard_that_was_killed_is_replaced(start):
    task = start(WAIT)
    task.wait_for_text("ready")
    user = task.status()["pid"]
    (guard,) = [pid for pid, _ in children(task.process.pid) if pid != user]
    os.kill(guard, signal.SIGKILL)
    (other,) = eventually(
        lambda: [pid for pid, _ in children(task.process.pid) if pid not in (user, guard)],
        what="another guard",
    )
    eventually(lambda: Path(f"/proc/{other}/comm").read_text() == f"{NAME}\n", what="it runs")
    task.process.kill()
    task.process.wait()
    eventually(lambda: not alive(user), what="the user's process gone")


def test_neither_the_token_nor_proxies_reach_the_process(start):
    source = "import json, os; print(json.dumps(dict(os.environ)))"
    task = start(source, variables={"http_proxy": "http://p", "HTTPS_PROXY": "http://p"})
    task.wait()
    seen = json.loads(task.text())
    assert not [
        name for name in seen if name.startswith("TASK_RUNNER_T") or "proxy" in name.lower()
    ]
    assert "unset HTTPS_PROXY, http_proxy" in task.text("stderr")


def test_the_directories_for_logs_and_checkpoints_are_there(start):
    source = (
        "import os; print(all(os.path.isdir(os.environ[n]) for n in ('LOG_DIR', 'CHECKPOINT_DIR')))"
    )
    task = start(source, checkpoint_dir="deep/down")
    task.wait()
    assert task.text() == "True\n"
    assert (task.sandbox / "deep/down").is_dir()


def test_a_directory_that_cannot_be_made_ends_with_a_sentence(start):
    task = start("print('ran')", checkpoint_dir="job.py/below")
    assert (task.wait(), task.text()) == (78, "")
    assert "job.py/below cannot be made" in task.report()["summary"]


@pytest.mark.parametrize("spec", ["", "{", '{"version": 1}'])
def test_a_spec_that_is_not_usable_ends_with_a_sentence(start, spec):
    task = start(variables={"TASK_RUNNER_SPEC": spec})
    assert task.wait() == 78
    assert "TASK_RUNNER_SPEC is not usable" in task.report()["summary"]


def test_logs_stay_within_their_bounds_and_end_with_the_newest_line(start):
    source = "for number in range(20000): print(f'line {number:06}')"
    task = start(source, log_max_bytes=50_000, log_keep=2)
    assert task.wait() == 0
    sizes = [path.stat().st_size for path in sorted(task.sandbox.glob("stdout*"))]
    assert len(sizes) == 3
    assert max(sizes) <= 50_000
    assert task.text().endswith("line 019999\n")


def test_output_that_comes_faster_than_it_is_read_is_whole(start):
    task = start("import os\nfor _ in range(200): os.write(1, b'x' * 9999 + b'\\n')")
    assert task.wait() == 0
    assert len(task.text()) == 200 * 10_000


def oldest_python() -> str | None:
    """Return a Python 3.8 of this machine that works, if there is one."""
    names = ["python3.8", *glob.glob(os.path.expanduser("~/.pyenv/versions/3.8.*/bin/python3"))]
    for name in names:
        try:
            subprocess.run([name, "-c", ""], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return name
    return None


def test_it_runs_under_python_3_8(start):
    python = oldest_python()
    if python is None:
        pytest.skip("there is no Python 3.8 on this machine")
    source = "import os, sys; print(sys.version_info[:2], os.environ['TASK_NAME'], flush=True)\n"
    task = start(source + WAIT, python=python)
    task.wait_for_text("ready")
    assert task.order(2)[0] == 200
    task.wait_for_state("running", starts=2, epoch=2)
    assert task.request("POST", "/v1/stop")[0] == 202
    assert task.wait() == 143
    assert task.text().splitlines()[0] == "(3, 8) worker-0"


def test_a_plain_script_with_parameter_servers_ends_with_a_sentence_before_it_runs(start):
    config = {"cluster": {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}}
    config["task"] = {"type": "ps", "index": 0}
    task = start(
        "print('ran')",
        cluster={"epoch": 1, "distribute": {"tf_config": config, "wait_for": []}},
        role="ps",
    )
    assert (task.wait(), task.text()) == (78, "")
    report = task.report()
    assert report["class"] == "job_unusable"
    assert report["summary"].startswith("job.py names no cluster, strategy or Server")
    assert '"parameter_server": {"count": 0}' in report["hint"]
