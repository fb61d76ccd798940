"""An operator of bare metal: schedulers under a supervisor, all asked of them from elsewhere.

The supervisor does what systemd would do by the unit that is shipped (``supervised_unit``), and
what stands in ``docs/bare-metal.md`` is what is typed.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from kazoo.client import KazooClient

from cluster_faults.network_namespace import run_inside
from command_line import UNTIL_FINISH, CommandLine, Ended
from dcos_tensorflow.cli.main import cli
from free_ports import free_port
from servers.zookeeper_server import ZooKeeperServer
from supervised_unit import Machine, Supervised, carry_out
from waiting import eventually

MANUAL = Path(__file__).resolve().parents[4] / "docs/bare-metal.md"
LANGUAGE = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)


def typed(heading: str) -> list[str]:
    """Return the commands below a heading of the manual, without the comments behind them."""
    section = MANUAL.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = "".join(LANGUAGE.findall(section)).splitlines()
    return [re.split(r"\s{3,}#", line)[0] for line in lines]


class ServiceOfMachines:
    """The service mnist, on whatever machines it was put."""

    def __init__(self) -> None:
        self.supervised: list[Supervised] = []

    def put_on(
        self, machine: Machine, job: Path, port: int, settings: Callable[[str], str]
    ) -> Supervised:
        """Install as the manual says; ``settings`` edits the environment as it says."""
        machine.install()
        commands = [
            line.replace("job.json", str(job)).replace("PORT=8080", f"PORT={port}")
            for line in typed("The scheduler under systemd")
            if line.startswith(("install ", "echo "))
        ]
        assert len(commands) == 5
        carry_out(commands, machine)
        environment = machine.path("/etc/dcos-tensorflow/environment")
        environment.write_text(settings(environment.read_text()))
        self.supervised.append(Supervised("mnist", machine))
        return self.supervised[-1]


@pytest.fixture
def mnist() -> Iterator[ServiceOfMachines]:
    """The service, of which nothing runs on afterwards."""
    found = ServiceOfMachines()
    yield found
    for one in found.supervised:
        one.end()


@pytest.fixture
def options(job: Any, tmp_path: Path) -> Path:
    """A job of one worker that leaves a line at each start, and prints one ever so often."""
    command = f"echo started | tee -a $CHECKPOINT_DIR/$TASK_NAME; {UNTIL_FINISH}"
    file: Path = job(command, "mnist", checkpoints={"uri": str(tmp_path)})
    return file


def a_person(home: Path, port: int, machine: Machine, address: str = "127.0.0.1") -> CommandLine:
    """Return the command line of a user who has the API's address and its token."""
    found = CommandLine(home)
    token = home / "token"
    home.mkdir()
    token.write_text(machine.path("/etc/dcos-tensorflow/api-token").read_text())
    token.chmod(0o600)
    found.environment["DCOS_TENSORFLOW_API"] = f"http://{address}:{port}"
    found.environment["DCOS_TENSORFLOW_CLIENT_TOKEN_FILE"] = str(token)
    return found


def phase(person: CommandLine) -> str:
    ended = person.ask("status", "--json")
    return str(json.loads(ended.out)["phase"]) if ended.code == 0 else ended.out


def is_deployed(person: CommandLine) -> bool:
    ended = person.ask("plan", "status", "deploy", "--json")
    return ended.code == 0 and json.loads(ended.out)["status"] == "COMPLETE"


def left_on(machine: Machine) -> list[Path]:
    """Return the files that a service has left on a machine.

    Who ordered its end is to be known afterwards, and what came of its runs.
    """
    meant = ("audit.jsonl", "points.jsonl", "run.json")
    below = machine.path("/var/lib/dcos-tensorflow/mnist").rglob("*")
    return [path for path in below if path.is_file() and path.name not in meant]


@pytest.mark.timeout(120)
def test_everything_is_done_from_elsewhere_while_the_scheduler_dies_and_comes_back(
    mnist: ServiceOfMachines, options: Path, lasting: Any, tmp_path: Path
) -> None:
    machine, port = Machine(tmp_path / "scheduler-1"), free_port()

    def on_the_embedded_cluster(text: str) -> str:
        token = next(line for line in text.splitlines() if "API_TOKEN_FILE" in line)
        state = f"sqlite:///{machine.root}/state.db"
        secret = lasting.command_line.home / "local/credential.json"
        return (
            f"{token}\nDCOS_TENSORFLOW_STATE={state}\nDCOS_TENSORFLOW_MASTER={lasting.master}\n"
            f"DCOS_TENSORFLOW_SECRET_FILE={secret}\nDCOS_TENSORFLOW_PRINCIPAL=dcos-tensorflow\n"
        )

    supervised = mnist.put_on(machine, options, port, on_the_embedded_cluster)
    person = a_person(tmp_path / "elsewhere", port, machine)
    eventually(lambda: phase(person) == "running", seconds=40)
    following = person.start("status", "--follow")
    # Else it may not know the service yet when the scheduler dies, and it can follow none.
    assert following.stdout is not None
    assert following.stdout.readline()
    changed = person.ask("update", "start", "mnist", "--set", "worker.count=2")
    assert changed.code == 0, changed.out
    eventually((tmp_path / "worker-1").exists)
    os.kill(supervised.process.pid, signal.SIGKILL)
    eventually(lambda: supervised.starts == 2)
    eventually(lambda: phase(person) == "running", seconds=40)
    # It was started with its own options again, and goes over to those.
    assert person.ask("why").code == 0
    ended = following.poll() is not None
    assert not ended, f"a scheduler that is away is no end of the job: {following.communicate()}"
    assert re.search("^mnist +running ", person.ask("list").out, re.MULTILINE)
    uninstalled = person.ask("uninstall", "mnist", "--yes")
    assert (uninstalled.code, uninstalled.out) == (0, "mnist is uninstalled.\n")
    out, _ = following.communicate(timeout=60)
    assert following.returncode != 0, out
    assert "Waiting for it to come back" in out
    assert "The job mnist was stopped" in out
    eventually(lambda: not supervised.runs, seconds=60)
    assert (supervised.process.returncode, supervised.starts) == (11, 2), supervised.log
    assert left_on(machine) == []


# The manual word by word, with a ZooKeeper, a standby, and a user at another machine.


@contextmanager
def another_machine() -> Iterator[tuple[str, str]]:
    """Yield the name of its network namespace, and this machine's address as seen from there.

    Only root can have one; for others it is this machine, and the name is empty.
    """
    name, link = f"person-{os.getpid()}", f"person{os.getpid()}"[:14]
    network = f"10.{os.getpid() // 250 % 250}.{os.getpid() % 250}"
    there = f"ip -n {name}"
    ip = shutil.which("ip")
    add = [ip or "", "netns", "add", name]
    if os.geteuid() or ip is None or subprocess.run(add, check=False).returncode:
        yield "", "127.0.0.1"
        return
    try:
        for command in (
            f"ip link add {link} type veth peer name eth0 netns {name}",
            f"ip addr add {network}.1/30 dev {link}",
            f"ip link set {link} up",
            f"{there} addr add {network}.2/30 dev eth0",
            f"{there} link set eth0 up",
        ):
            subprocess.run(command.split(), check=True)
        yield name, f"{network}.1"
    finally:
        subprocess.run([ip, "netns", "delete", name], check=True)


@contextmanager
def announced(zookeeper: ZooKeeperServer, master: str) -> Iterator[KazooClient]:
    """Announce a master in ZooKeeper, as masters do it themselves."""
    host, _, port = master.rpartition(":")
    address = {"hostname": host, "ip": host, "port": int(port)}
    client = KazooClient(zookeeper.address)
    client.start()
    try:
        info = json.dumps({"id": "m", **address, "address": address}).encode()
        client.create("/mesos/json.info_", info, sequence=True, ephemeral=True, makepath=True)
        yield client
    finally:
        client.stop()
        client.close()


def commands_with_an_api(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield all commands that ask or steer a service."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            if found.name == name:  # Else it is another name of a command.
                yield from commands_with_an_api(found, (*path, name))
    elif any("--api" in parameter.opts for parameter in command.params):
        yield " ".join(path)


#: What a person does with a service that runs, and how it ends: of what cannot be, one sentence.
#: None: it depends on how far the update before is.
DONE = {
    "list": 0,
    "status": 0,
    "status mnist --json": 0,
    "status other": "is that of mnist, not of other",
    "why": 0,
    "cluster": 0,
    "dashboard": 0,
    "open --no-browser": 0,
    "endpoints": 0,
    "endpoints worker": 0,
    "endpoints nobody": "There is no endpoint nobody",
    "options": 0,
    "describe": 0,
    "tensorboard": "set service.use_tensorboard",
    "capacity status": "no machines are bought",
    "capacity release": "no machines are bought",
    "sweep mnist": "There is no sweep in this service",
    "sweep board": "There is no sweep in this service",
    "sweep best": "There is no sweep in this service",
    "batch": "There is no batch in this service",
    "runs list": 0,
    "runs show mnist": 0,
    "runs show mnist@77": "No run 77 of mnist is kept",
    "plot mnist --out curve.gif": "name a file that ends in .svg or .png",
    "logs": 0,
    "logs worker --file stderr": 0,
    "logs nobody": "There is no task nobody",
    "plan list": 0,
    "plan status deploy --reasons": 0,
    "plan pause deploy": "already been issued or the plan has completed",
    "plan resume deploy": "is not paused",
    "plan stop recovery": 0,
    "plan start recovery": 0,
    "plan force-restart deploy worker": 0,
    "plan force-complete deploy worker nothing": "does not exist",
    "pod list": 0,
    "pod status": 0,
    "pod info worker-0": 0,
    "pod pause worker-0": 0,
    "pod resume worker-0": 0,
    "pod restart worker-0": 0,
    "pod replace worker-0": 0,
    "update start --set worker.count=x": "must be a whole number",
    "update start --set service.name=other": "cannot be changed",
    "update start --set worker.count=2": 0,
    "update status --reasons": 0,
    "update configurations": 0,
    "update pause": None,
    "update resume": None,
    "update force-restart": None,
    "update force-complete worker nothing": "does not exist",
    "update rollback": "must be said by its id",
    "debug config list": 0,
    "debug config target": 0,
    "debug config target_id": 0,
    "debug config show nothing": "not the id of a configuration",
    "debug state framework_id": 0,
    "debug state properties": 0,
    "debug state property suppressed": 0,
    "debug state refresh_cache": "there is no cache",
    "debug pod pause worker-0": 0,
    "debug pod resume worker-0": 0,
    "uninstall mnist": "confirm with --yes",
}


@pytest.mark.soak
@pytest.mark.zookeeper
@pytest.mark.timeout(900)
def test_the_manual_is_what_a_person_at_another_machine_does(
    mnist: ServiceOfMachines,
    options: Path,
    lasting: Any,
    own_zookeeper: ZooKeeperServer,
    tmp_path: Path,
) -> None:
    machines = [Machine(tmp_path / f"scheduler-{number}") for number in (1, 2)]
    ports = [free_port(), free_port()]
    secret = json.loads((lasting.command_line.home / "local/credential.json").read_text())

    def edited(text: str) -> str:
        """Return the environment as the manual wants it: masters, state, this machine, secret."""
        text = re.sub(r"zk://zookeeper-1[^/\s]*", f"zk://{own_zookeeper.address}", text)
        text = text.replace("scheduler-1.example.org", here)
        text = re.sub("#(.*_PRINCIPAL=).*", rf"\g<1>{secret['principal']}", text)
        return text.replace("#DCOS_TENSORFLOW_SECRET_FILE", "DCOS_TENSORFLOW_SECRET_FILE")

    def put(number: int) -> Supervised:
        machine = machines[number]
        file = machine.path("/etc/dcos-tensorflow/secret")
        file.parent.mkdir(parents=True)
        file.write_text(secret["secret"])
        return mnist.put_on(machine, options, ports[number], edited)

    with (
        another_machine() as (namespace, here),
        announced(own_zookeeper, lasting.master) as zookeeper,
    ):
        first = put(0)
        person = a_person(tmp_path / "elsewhere", ports[0], machines[0], here)
        person.before = ["ip", "netns", "exec", namespace] if namespace else []
        # What the manual exports, with the addresses and names of this test.
        exports = [line for line in typed("From your own machine") if line.startswith("export ")]
        names = {line.split()[1].partition("=")[0] for line in exports}
        assert names <= set(person.environment)

        def there(*words: str) -> Ended:
            """Run a command where the person is."""
            if not namespace:
                return person.ask(*words)
            return run_inside(f"/run/netns/{namespace}", lambda: person.ask(*words))

        if here != "127.0.0.1":
            assert "would get the token in clear" in there("status").out
        person.environment["DCOS_TENSORFLOW_API_TOKEN_IN_CLEAR"] = "true"
        eventually(lambda: phase(person) == "running", seconds=120)

        # A command that follows goes on when the scheduler is killed and comes back.
        lines = [shlex.split(line) for line in typed("From your own machine")]
        manual = [words for program, *words in lines if program == "dcos-tensorflow"]
        assert len(manual) == 5
        followers = [person.start(*line) for line in manual if "--follow" in line]
        for follower in followers:
            assert follower.stdout is not None
            assert follower.stdout.readline()
        os.kill(first.process.pid, signal.SIGKILL)
        eventually(lambda: first.starts == 2, seconds=60)
        eventually(lambda: phase(person) == "running", seconds=120)

        for line in manual:
            if "--follow" not in line and line[0] != "uninstall":
                ended = there(*line)
                assert ended.code == 0, (line, ended)
        eventually(lambda: is_deployed(person), seconds=120)
        for command, expected in DONE.items():
            ended = there(*shlex.split(command))
            assert "Traceback" not in ended.out, (command, ended.out)
            if isinstance(expected, str):
                assert ended.code in (1, 2), (command, ended)
                assert expected in ended.out, (command, ended.out)
            elif expected is not None:
                assert ended.code == expected, (command, ended)
        played = [f"{command} " for command in (*DONE, "stop")]
        missing = {
            each
            for each in commands_with_an_api()
            if not any(command.startswith(f"{each} ") for command in played)
        }
        assert missing == set()
        assert [follower.poll() for follower in followers] == [None, None]

        second = put(1)
        eventually(lambda: "is led by" in second.log, seconds=120)

        stopped = there("stop", "mnist")
        assert (stopped.code, stopped.out.startswith("mnist has ended: stopped")) == (0, True)
        for follower in followers:
            follower.communicate(timeout=60)
        assert [follower.returncode for follower in followers] == [130, 0]
        uninstalled = there("uninstall", "mnist", "--yes")
        assert (uninstalled.code, uninstalled.out) == (0, "mnist is uninstalled.\n")
        eventually(lambda: not (first.runs or second.runs), seconds=120)
        assert [each.process.returncode for each in (first, second)] == [11, 11], second.log
        assert (first.starts, second.starts) == (2, 1)
        assert set(zookeeper.get_children("/")) == {"mesos", "zookeeper"}
        assert [left_on(machine) for machine in machines] == [[], []]
    state = json.loads(lasting.command_line.mesos("/state"))
    assert [f["name"] for f in state["frameworks"] if f["name"] == "mnist"] == []
    assert all(not agent["reserved_resources"] for agent in state["slaves"])
    assert all(agent["used_resources"]["cpus"] == 0 for agent in state["slaves"])
