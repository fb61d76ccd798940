"""Health checks and checks of one task: by command, HTTP or TCP.

Runs inside ``executor``'s process, each check in a thread of its own that reports through a
callback. Intervals and defaults are those of Mesos (``mesos.proto``: CheckInfo, HealthCheck).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

Report = Callable[[dict[str, Any]], None]

_DELAY_SECONDS = 15.0
_INTERVAL_SECONDS = 10.0
_TIMEOUT_SECONDS = 20.0
_GRACE_SECONDS = 10.0
_FAILURES = 3
#: Within its grace a task that was never healthy is looked at so often, whatever the interval: a
#: person waits for it. Mesos waits for the interval; no failure counts in that time anyway.
_FIRST_INTERVAL_SECONDS = 0.2


def start_checks(spec: Mapping[str, Any], report: Report) -> None:
    """Start the task's check and health check, if it has them."""
    if "check" in spec:
        _thread(_run_check, spec, report)
    if "health_check" in spec:
        _thread(_run_health_check, spec, report)


def _thread(body: Callable[..., None], spec: Mapping[str, Any], report: Report) -> None:
    threading.Thread(target=body, args=(spec, report), daemon=True).start()


def _run_check(spec: Mapping[str, Any], report: Report) -> None:
    check = spec["check"]
    last: dict[str, Any] | None = None
    time.sleep(check.get("delay_seconds", _DELAY_SECONDS))
    while True:
        kind = check["type"]
        result = probe(check, spec)
        body = {} if result is None else {_RESULT_NAMES[kind]: result}
        status = {"type": kind, kind.lower(): body}
        # Mesos tells changes only.
        if status != last:
            last = status
            report({"type": "check", "status": status})
        time.sleep(check.get("interval_seconds", _INTERVAL_SECONDS))


_RESULT_NAMES = {"COMMAND": "exit_code", "HTTP": "status_code", "TCP": "succeeded"}


def _run_health_check(spec: Mapping[str, Any], report: Report) -> None:
    check = spec["health_check"]
    started = time.monotonic()
    failures = 0
    healthy: bool | None = None
    time.sleep(check.get("delay_seconds", _DELAY_SECONDS))
    grace = check.get("grace_period_seconds", _GRACE_SECONDS)
    while True:
        passed = _passed(check["type"], probe(check, spec))
        interval = check.get("interval_seconds", _INTERVAL_SECONDS)
        if passed:
            failures = 0
            if healthy is not True:
                healthy = True
                report({"type": "health", "healthy": True})
        elif healthy is None and time.monotonic() - started < grace:
            interval = min(interval, _FIRST_INTERVAL_SECONDS)
        else:
            failures += 1
            healthy = False
            report({"type": "health", "healthy": False})
            if failures >= check.get("consecutive_failures", _FAILURES):
                report({"type": "unhealthy"})
        time.sleep(interval)


def _passed(kind: str, result: int | bool | None) -> bool:
    if kind == "COMMAND":
        return result == 0
    if kind == "HTTP":
        return isinstance(result, int) and 200 <= result < 400
    return bool(result)


def probe(check: Mapping[str, Any], spec: Mapping[str, Any]) -> int | bool | None:
    """Run a check once: exit code, HTTP status or whether TCP connected; None when it timed out."""
    timeout = check.get("timeout_seconds", _TIMEOUT_SECONDS) or None
    if check["type"] == "COMMAND":
        command = check["command"]
        # CheckInfo wraps its CommandInfo once more than HealthCheck does.
        return _command(command.get("command", command), spec, timeout)
    if check["type"] == "HTTP":
        return _http(check["http"], spec["address"], timeout)
    return _tcp(check["tcp"], spec["address"], timeout)


def _command(
    command: Mapping[str, Any], spec: Mapping[str, Any], timeout: float | None
) -> int | None:
    if command.get("shell", True):
        arguments = ["/bin/sh", "-c", command["value"]]
    else:
        arguments = [*command.get("arguments", [command["value"]])]
    environment = dict(spec["environment"])
    for variable in command.get("environment", {}).get("variables", []):
        environment[variable["name"]] = variable.get("value", "")
    try:
        process = subprocess.Popen(
            arguments,
            executable=None if command.get("shell", True) else command["value"],
            cwd=spec["sandbox"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return 1
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def _http(check: Mapping[str, Any], address: str, timeout: float | None) -> int | None:
    # Few tasks have such a check, and each import stands in the way of the first task's start.
    import ssl
    import urllib.error
    import urllib.request

    path = "/" + check.get("path", "").lstrip("/")
    url = f"{check.get('scheme', 'http')}://{address}:{check['port']}{path}"
    # As Mesos (curl -k): the certificate of a task names no address.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(url, timeout=timeout) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return int(error.code)
    except (OSError, ValueError):
        return None


def _tcp(check: Mapping[str, Any], address: str, timeout: float | None) -> bool:
    try:
        with socket.create_connection((address, check["port"]), timeout):
            return True
    except OSError:
        return False
