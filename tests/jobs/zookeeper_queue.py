"""A queue whose records, and those of its jobs, are in ZooKeeper; Mesos asks for a login."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from command_line import CommandLine
from embedded_mesos import AgentConfig, Credential, EmbeddedCluster, Timing
from free_ports import agent_ports
from servers.zookeeper_server import ZooKeeperServer
from waiting import eventually

SECONDS = 120.0
#: The queue, and the teams that have logins of their own: principal and secret, user and password.
LOGINS = {name: f"the-secret-of-{name}" for name in ("queue", "red", "blue")}
AGENTS = 2
QUICK = {
    "reclaim_after_seconds": 1.0,
    "least_run_seconds": 1.0,
    "grace_seconds": 5.0,
    "between_giving_way_seconds": 1.0,
}


class ZooKeeperQueue:
    """Two machines with room for one job and its scheduler each, and a queue of two teams."""

    def __init__(self, folder: Path, zookeeper: ZooKeeperServer, chroot: str) -> None:
        self.folder = folder
        self.zookeeper = zookeeper
        self.chroot = chroot
        agents = [
            AgentConfig(
                address=f"127.0.0.{n + 1}",
                cpus=1.0,
                mem=1000,
                ports=agent_ports(n),
            )
            for n in range(AGENTS)
        ]
        timing = Timing(agent_ping=1.0, agent_ping_timeouts=5)
        self.cluster = EmbeddedCluster(agents, folder / "mesos", timing=timing, credentials=LOGINS)
        self.cluster.start()
        self.home = CommandLine(folder / "home")
        for name, secret in LOGINS.items():
            self._keep(f"{name}.secret", secret)
            self._keep(f"{name}.login", f"{name}:{secret}")
        for team in ("red", "blue"):
            self._keep(f"{team}-settings.json", json.dumps(self.login(team)))
        teams = {
            team: {"guarantee": 0.5, "settings": f"{team}-settings.json"}
            for team in ("red", "blue")
        }
        self.teams = folder / "teams.json"
        self.teams.write_text(json.dumps({"teams": teams, "rules": QUICK}))
        self._log = (folder / "queue.log").open("ab")
        self.queue = self.serve()

    def login(self, name: str) -> dict[str, str]:
        """Return the settings of a login."""
        return {
            "principal": name,
            "secret_file": str(self.folder / f"{name}.secret"),
            "zookeeper_login_file": str(self.folder / f"{name}.login"),
        }

    def _keep(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)

    def serve(self, *flags: str) -> subprocess.Popen[bytes]:
        """Serve the queue; return its process once it answers."""
        settings = {**self.login("queue"), "master": self.cluster.master, "verify": True}
        settings["state"] = self.zookeeper.url(self.chroot)
        said = [
            part
            for name, value in settings.items()
            if isinstance(value, str)
            for part in (f"--{name.replace('_', '-')}", value)
        ]
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "dcos_tensorflow", "queue", "serve", str(self.teams)),
                *(*said, *flags),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=self.home.environment,
        )
        eventually(
            lambda: self.home.ask("queue", "--json").code == 0 or process.poll() is not None,
            seconds=SECONDS,
            what=self.log,
        )
        return process

    def log(self) -> str:
        return (self.folder / "queue.log").read_text()[-4000:]

    def submit(self, team: str, name: str, command: str = "true", code: Path | None = None) -> None:
        """Hand in a job of one task that takes a machine: a command, or ``train`` of a folder."""
        what = {"job_cmd": command} if code is None else {"job_name": "train", "job_url": str(code)}
        service = {"name": name, "python": sys.prefix, **what}
        worker = {"count": 1, "cpus": 0.8, "mem": 64, "disk": 10}
        options = self.folder / f"{name}.json"
        options.write_text(json.dumps({"service": service, "worker": worker}))

        def is_taken() -> bool:
            # The queue does not know the machines yet.
            return self.home.ask("submit", options, "--team", team).code == 0

        eventually(is_taken, seconds=SECONDS, what=lambda: f"{name} to be taken: {self.log()}")

    def until(self, name: str, state: str) -> dict[str, Any]:
        """Return a job once it is in a state."""
        eventually(
            lambda: self.job(name).get("state") == state,
            seconds=SECONDS,
            what=lambda: f"{name} to be {state}: {self.job(name)} {self.log()}",
        )
        return self.job(name)

    def job(self, name: str) -> dict[str, Any]:
        answer = self.home.ask("queue", "list", "--all", "--json")
        jobs = {job["job"]: job for job in json.loads(answer.out)} if not answer.code else {}
        return dict(jobs.get(name, {}))

    def address_of(self, name: str) -> str:
        """Return where the API of a job's scheduler is, once it is there."""
        found: list[str] = []

        def is_there() -> bool:
            for place in (self.folder / "mesos").rglob(f"work/services/{name}/scheduler.json"):
                with suppress(OSError, ValueError, KeyError):
                    found.append(json.loads(place.read_text())["api"])
            return bool(found)

        eventually(is_there, seconds=SECONDS, what=lambda: f"{name} to be served: {self.log()}")
        return found[-1]

    def of_master(self, path: str) -> Any:
        """Return what the master answers to the queue."""
        known = Credential("queue", LOGINS["queue"]).header()
        request = urllib.request.Request(f"http://{self.cluster.master}{path}", headers=known)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())

    def kill(self) -> None:
        """Kill the queue."""
        self.queue.kill()
        self.queue.wait()

    def end(self) -> None:
        """Uninstall what there is of the queue, and end the cluster."""
        self.queue.send_signal(signal.SIGTERM)
        try:
            self.queue.wait(SECONDS)
        finally:
            self.queue.kill()
            self.cluster.stop()
            self._log.close()
