"""One look at a task's health: HTTP, TCP or a command. ``marathon`` asks, and counts.

Statuses from 200 to 399 are healthy, as with Marathon's and Mesos' checks.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
from collections.abc import Mapping, Sequence

from dcos_tensorflow.local.dcos.app_definition import HealthCheck
from dcos_tensorflow.local.dcos.app_process import kill_tree

_HOST = "127.0.0.1"


def problem(
    check: HealthCheck, ports: Sequence[int], env: Mapping[str, str], sandbox: str
) -> str | None:
    """Return why the task is not healthy, None when it is."""
    if check.protocol == "COMMAND":
        return _command(check, env, sandbox)
    port = check.port if check.port is not None else ports[check.port_index]
    if check.protocol in ("TCP", "MESOS_TCP"):
        return _tcp(port, check.timeout)
    return _http(check, port)


def _tcp(port: int, timeout: float) -> str | None:
    try:
        socket.create_connection((_HOST, port), timeout).close()
    except OSError as error:
        return f"port {port}: {error}"
    return None


def _http(check: HealthCheck, port: int) -> str | None:
    connection: http.client.HTTPConnection
    if check.protocol.endswith("HTTPS"):
        # As Marathon: the certificate of a task names no address.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            _HOST, port, timeout=check.timeout, context=context
        )
    else:
        connection = http.client.HTTPConnection(_HOST, port, timeout=check.timeout)
    try:
        connection.request("GET", check.path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"port {port}{check.path}: {error}"
    finally:
        connection.close()
    return None if 200 <= status < 400 else f"port {port}{check.path}: HTTP status {status}"


def _command(check: HealthCheck, env: Mapping[str, str], sandbox: str) -> str | None:
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", check.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=sandbox,
            env=dict(env),
            start_new_session=True,
        )
    except OSError as error:
        return f"the health command cannot be run: {error}"
    try:
        status = process.wait(check.timeout)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        process.wait()
        return f"the health command took longer than {check.timeout:g} s"
    return None if status == 0 else f"the health command ended with {status}"
