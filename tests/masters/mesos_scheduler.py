"""A bare scheduler for tests of the embedded cluster: one subscription, calls, waiting."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from types import TracebackType
from typing import Any

from embedded_mesos import Credential
from masters.mesos_recording import LiveStream

Json = dict[str, Any]
_NOBODY = Credential()

CAPABILITIES = ("MULTI_ROLE", "RESERVATION_REFINEMENT", "GPU_RESOURCES", "PARTITION_AWARE")


class Scheduler:
    """Subscribes at once; a context manager that goes away without a word."""

    def __init__(
        self,
        master: str,
        *,
        credentials: Credential = _NOBODY,
        framework_id: str | None = None,
        role: str = "tensorflow",
        failover_timeout: float = 60,
        checkpoint: bool = True,
        capabilities: tuple[str, ...] = CAPABILITIES,
    ) -> None:
        self.master = master
        info: Json = {
            "user": "root",
            "name": "test",
            "roles": [role],
            "checkpoint": checkpoint,
            "failover_timeout": failover_timeout,
            "capabilities": [{"type": name} for name in capabilities],
        }
        call: Json = {"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}
        if framework_id is not None:
            info["id"] = call["framework_id"] = {"value": framework_id}
        self._known = credentials.header()
        connection = http.client.HTTPConnection(master, timeout=10)
        headers = {"Content-Type": "application/json", **self._known}
        connection.request("POST", "/api/v1/scheduler", json.dumps(call), headers)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        self.stream = LiveStream("test", connection, response)
        self._history: list[Json] = []
        subscribed = self.wait("SUBSCRIBED")
        self.framework_id: str = subscribed["framework_id"]["value"]

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stream.close()

    def call(self, kind: str, body: Json | None = None, *, expect: int = 202) -> str:
        """Send a call and return the body of its answer."""
        call: Json = {"type": kind, "framework_id": {"value": self.framework_id}}
        if body is not None:
            call[kind.lower()] = body
        connection = http.client.HTTPConnection(self.master, timeout=10)
        headers = {
            "Content-Type": "application/json",
            "Mesos-Stream-Id": self.stream.stream_id,
            **self._known,
        }
        try:
            connection.request("POST", "/api/v1/scheduler", json.dumps(call), headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        assert response.status == expect, text
        return text

    def wait(
        self, kind: str, matches: Callable[[Json], bool] = lambda _: True, seconds: float = 8.0
    ) -> Json:
        """Return the body of the first event of this kind that matches, and use it up."""
        field = kind.lower()

        def take() -> Json | None:
            for index, event in enumerate(self.stream.events):
                if event["type"] == kind and matches(event.get(field, {})):
                    return dict(self.stream.events.pop(index).get(field, {}))
            return None

        with self.stream.changed:
            found: Json | None = None

            def ready() -> bool:
                nonlocal found
                found = take()
                return found is not None or self.stream.closed

            self.stream.changed.wait_for(ready, seconds)
            assert found is not None, f"no {kind}; there is {self.stream.events}"
            return found

    def offer(self, hostname: str | None = None, least_cpus: float = 0.0) -> Json:
        """Return an open offer, of ``hostname`` if given."""

        def fits(offer: Json) -> bool:
            cpus = sum(r["scalar"]["value"] for r in offer["resources"] if r["name"] == "cpus")
            return hostname in (None, offer["hostname"]) and cpus >= least_cpus

        found: list[Json] = []

        def take(body: Json) -> bool:
            offers = body["offers"]
            for index, offer in enumerate(offers):
                if fits(offer):
                    found.append(offers.pop(index))
                    # The rest of the event stays for others.
                    return not offers
            return False

        with self.stream.changed:

            def ready() -> bool:
                for event in list(self.stream.events):
                    if event["type"] == "OFFERS":
                        if take(event["offers"]):
                            self.stream.events.remove(event)
                        if found:
                            return True
                return False

            self.stream.changed.wait_for(ready, 8.0)
            assert found, f"no offer of {hostname}; there is {self.stream.events}"
            return found[0]

    def launch(self, offer: Json, *tasks: Json, refuse_seconds: float = 0) -> None:
        """Accept an offer with a LAUNCH of ``tasks``."""
        launch = {"type": "LAUNCH", "launch": {"task_infos": list(tasks)}}
        body = {
            "offer_ids": [offer["id"]],
            "operations": [launch],
            "filters": {"refuse_seconds": refuse_seconds},
        }
        self.call("ACCEPT", body)

    def update(self, task_id: str, state: str | None = None, seconds: float = 8.0) -> Json:
        """Return the status of the next update of a task (in ``state``)."""
        body = self.wait(
            "UPDATE",
            lambda body: (
                body["status"]["task_id"]["value"] == task_id
                and state in (None, body["status"]["state"])
            ),
            seconds,
        )
        return dict(body["status"])

    def acknowledge(self, status: Json) -> None:
        """Acknowledge an update."""
        names = ("agent_id", "task_id", "uuid")
        self.call("ACKNOWLEDGE", {name: status[name] for name in names})

    def run_until(self, task_id: str, state: str) -> Json:
        """Acknowledge a task's updates up to the one with ``state``, and return that."""
        while True:
            status = self.update(task_id)
            if "uuid" in status:
                self.acknowledge(status)
            if status["state"] == state:
                return status

    def kill(self, task_id: str) -> None:
        """Ask for a task's end."""
        self.call("KILL", {"task_id": {"value": task_id}})

    def reconcile(self, task_id: str | None = None, agent_id: str | None = None) -> None:
        """Ask for the state of a task, or of all."""
        one: Json = {"task_id": {"value": task_id}}
        if agent_id is not None:
            one["agent_id"] = {"value": agent_id}
        self.call("RECONCILE", {"tasks": [] if task_id is None else [one]})


def task(
    offer: Json,
    task_id: str,
    command: str | Json,
    *,
    cpus: float = 0.1,
    mem: float = 32,
    gpus: int = 0,
    **more: Any,
) -> Json:
    """Return a TaskInfo for an offer's agent."""
    amounts = {"cpus": cpus, "mem": mem, "gpus": gpus}
    return {
        "name": task_id,
        "task_id": {"value": task_id},
        "agent_id": offer["agent_id"],
        "resources": [
            {"name": name, "type": "SCALAR", "scalar": {"value": value}}
            for name, value in amounts.items()
            if value
        ],
        "command": {"value": command} if isinstance(command, str) else command,
        **more,
    }
