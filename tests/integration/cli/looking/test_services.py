"""A cluster that lives on, jobs in the background, and the daemon alone."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import ROOT, UNTIL_FINISH, CommandLine
from waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def cluster(lasting):
    return lasting.master


@pytest.fixture
def command_line(lasting):
    return lasting.command_line


@pytest.fixture
def name(tmp_path):
    """A service of the test's own: the tests share one cluster."""
    return tmp_path.name.replace("_", "-").strip("-")


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def document(ended):
    assert ended.code == 0, ended.out
    return json.loads(ended.out[ended.out.index("{") :])


def phase(command_line, service):
    ended = command_line.ask("status", service, "--json")
    return json.loads(ended.out)["phase"] if ended.code == 0 else ended.out


def test_the_cluster_that_is_up_is_seen_and_used(command_line, job, cluster, name):
    status = document(command_line.ask("local", "status", "--json"))
    assert [agent["attributes"]["rack"] for agent in status["agents"]] == ["r1", "r2"]
    assert document(command_line.ask("local", "up", "--json"))["started"] is False
    ended = command_line.ask("run", job("true", name))
    assert ended.code == 0, ended.out
    assert cluster in ended.out
    frameworks = json.loads(command_line.mesos("/state"))["frameworks"]
    assert name not in [each["name"] for each in frameworks]


def test_the_page_of_the_cluster_and_its_secret_are_told(command_line, cluster):
    secret = json.loads((command_line.home / "local/credential.json").read_text())["secret"]
    told = document(command_line.ask("local", "dashboard", "--token", "--json"))
    assert told == {"url": f"http://{cluster}/", "token": secret}
    assert secret not in command_line.ask("local", "dashboard").out


def test_a_cluster_that_does_not_run_has_no_page(command_line):
    ended = command_line.ask("local", "dashboard", "no-such-service")
    assert (ended.code, "No embedded cluster runs" in ended.out) == (1, True)


def test_sigterm_leaves_a_job_on_a_lasting_cluster_alone(command_line, job, name):
    file = job(f"echo started >> $CHECKPOINT_DIR/starts; {UNTIL_FINISH}", name)
    process = command_line.start("run", file)
    assert process.stdout is not None
    assert any("worker-0 running" in line for line in process.stdout)
    process.terminate()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM, out
    assert "The job goes on" in out
    assert "By its state the job is running" in command_line.ask("status", name).out
    checkpoints = command_line.home / "services" / name / "checkpoints"
    (checkpoints / "finish").touch()
    again = command_line.ask("run", file)
    assert again.code == 0, again.out
    assert (checkpoints / "starts").read_text() == "started\n"


def test_a_job_that_goes_on_is_taken_over_to_other_options(command_line, job, name):
    file = job(f"echo $GREETING >> $CHECKPOINT_DIR/starts; {UNTIL_FINISH}", name)
    first = command_line.start("run", file, "--set", "worker.env.GREETING=hello")
    assert first.stdout is not None
    assert any("worker-0 running" in line for line in first.stdout)
    first.terminate()
    first.communicate(timeout=30)
    checkpoints = command_line.home / "services" / name / "checkpoints"
    other = ("run", file, "--set", "worker.env.GREETING=again")
    assert "--update" in command_line.ask(*other).out
    second = command_line.start(*other, "--update")
    eventually(lambda: (checkpoints / "starts").read_text() == "hello\nagain\n", seconds=60)
    (checkpoints / "finish").touch()
    out, _ = second.communicate(timeout=60)
    assert second.returncode == 0, out


def test_a_detached_job_is_watched_and_stopped_from_other_terminals(command_line, job, name):
    file = job("for i in $(seq 300); do echo step $i loss 0.5; sleep 0.2; done", name)
    started = document(command_line("run", file, "--detach", "--json"))
    eventually(lambda: phase(command_line, name) == "running")
    assert "needs" not in command_line.ask("why", name).out
    addresses = document(command_line.ask("cluster", name, "--json"))["addresses"]
    assert list(addresses) == ["worker-0"]
    assert f"Service '{name}' is already led by" in command_line.ask("run", file).out
    stopped = command_line.ask("stop", name)
    assert stopped.code == 0, stopped.out
    eventually(lambda: not lives(started["pid"]))
    after = command_line.ask("status", name)
    assert f"The job {name} was stopped" in after.out
    assert "has ended: stopped" in command_line.ask("stop", name).out


def test_the_last_turns_of_a_scheduler_play_again_without_a_difference(
    command_line, job, name, tmp_path
):
    assert command_line("run", job("sleep 300", name), "--detach").code == 0
    eventually(lambda: phase(command_line, name) == "running")
    turns = tmp_path / "turns.json"
    recorded = command_line.ask("state", "record", "--name", name, "--out", str(turns))
    assert recorded.code == 0, recorded.out
    played = [sys.executable, str(ROOT / "tests/simulation/replay.py"), str(turns)]
    ended = subprocess.run(played, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert command_line.ask("stop", name).code == 0


def test_a_detached_job_is_followed_to_its_exit_code(command_line, job, name):
    file = job("sleep 0.5; echo the end >&2; exit 5", name, retry={"limit": 0})
    assert command_line("run", file, "--detach").code == 0
    ended = command_line.ask("status", name, "--follow")
    assert ended.code == 5, ended.out
    assert "  | the end" in ended.out


def test_who_detaches_a_job_that_is_under_way_is_told_who_serves_it(command_line, job, name):
    file = job("sleep 30", name)
    first = document(command_line("run", file, "--detach", "--json"))
    second = command_line("run", file, "--detach")
    assert second.code == 8
    assert f"A job of the service {name} is under way" in second.out
    assert f"pid {first['pid']}" in second.out
    assert "Traceback" not in second.out
    assert command_line.ask("stop", name).code == 0


def test_who_is_not_known_to_a_master_is_told_how_to_be(command_line, job, cluster, name):
    refused = command_line("run", job("true", name), "--master", cluster)
    assert refused.code != 0
    assert "HTTP 401" in refused.out
    assert "--principal and --secret-file" in refused.out


@pytest.fixture
def scheduler(command_line, job, cluster, tmp_path, name):
    """Start the daemon by a settings file, the environment and flags, each naming a part."""
    config = tmp_path / "scheduler.json"
    config.write_text(json.dumps({"master": "127.0.0.1:1", "state": "sqlite:///nowhere/x.db"}))
    state = f"sqlite:///{tmp_path}/state.db"
    started: list[subprocess.Popen[str]] = []

    def start(*more):
        line = CommandLine(command_line.home)
        line.environment = {**command_line.environment, "DCOS_TENSORFLOW_STATE": state}
        line.environment["DCOS_TENSORFLOW_MASTER"] = cluster
        # As any framework from elsewhere is let in to the cluster of ``local up``.
        credential = command_line.home / "local/credential.json"
        line.environment["DCOS_TENSORFLOW_PRINCIPAL"] = "dcos-tensorflow"
        line.environment["DCOS_TENSORFLOW_SECRET_FILE"] = str(credential)
        file = job(
            "echo started >> $CHECKPOINT_DIR/starts; sleep 60",
            name,
            checkpoints={"uri": str(tmp_path)},
        )
        process = line.start("scheduler", file, "--config", config, "--artifacts", "file", *more)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_daemon_that_is_told_to_end_leaves_its_tasks_to_the_next(
    command_line, scheduler, tmp_path, name
):
    first = scheduler()
    eventually(lambda: phase(command_line, name) == "running")
    eventually((tmp_path / "starts").exists)
    first.send_signal(signal.SIGTERM)
    out, _ = first.communicate(timeout=30)
    assert first.returncode == 0, out
    assert "its tasks are left alone" in out
    second = scheduler()
    eventually(lambda: phase(command_line, name) == "running")
    assert (tmp_path / "starts").read_text() == "started\n"
    assert command_line.ask("stop", name).code == 0
    assert second.poll() is None, "the daemon stays to answer questions"
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=30)
    assert second.returncode == 0


def test_a_daemon_that_waits_for_the_leadership_ends_when_told_to(command_line, scheduler, name):
    scheduler()
    eventually(lambda: phase(command_line, name) == "running")
    waiting = scheduler()
    eventually(
        lambda: os.path.exists(f"/proc/{waiting.pid}/fd/1") and _handles_sigterm(waiting.pid)
    )
    waiting.terminate()
    out, _ = waiting.communicate(timeout=30)
    assert waiting.returncode == 0, out
    assert command_line.ask("stop", name).code == 0


def _handles_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.split("SigCgt:")[1].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)
