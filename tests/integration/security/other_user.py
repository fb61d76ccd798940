"""Run as a user of the machine: tries all that another user has there, and prints what it got.

``other_user.py VICTIM-UID FOLDER...``: the folders are those that the victim keeps his things in.
The standard library alone: it must run as any user.
"""

import http.client
import json
import os
import signal
import sys
from contextlib import closing
from pathlib import Path

#: What Mesos and the API answer to everybody, and health.
_OPEN = {"/health", "/version", "/v1/health"}
#: Who may not, or that there is no such path or method.
_REFUSALS = {401, 403, 404, 405, 501}
_ASKED = (
    *(("GET", path) for path in ("/", *sorted(_OPEN), "/state", "/master/state", "/files/debug")),
    *(("GET", path) for path in ("/v1/why", "/v1/job", "/v1/openapi.json", "/v1/status")),
    *(("GET", path) for path in ("/v1/events", "/v1/curves", "/v1/runs", "/overview/agents")),
    *(("POST", path) for path in ("/overview/agents/0/start", "/overview/tasks/any/kill")),
    *(("GET", path) for path in ("/mesos/state", "/service/marathon/v2/apps")),
    *(("POST", path) for path in ("/api/v1", "/api/v1/scheduler", "/master/teardown")),
    *(("POST", path) for path in ("/v1/job/stop", "/v1/uninstall", "/v1/stop", "/package/install")),
    ("PUT", "/v1/cluster"),
)


def processes(uid: int) -> list[int]:
    """Return the victim's processes: anybody may list them."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def listening(uid: int) -> list[tuple[str, int]]:
    """Return where the victim's processes listen on IPv4: anybody may look (proc(5))."""
    found = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        host, _, port = fields[1].partition(":")
        if fields[3] == "0A" and int(fields[7]) == uid:
            address = ".".join(str(b) for b in bytes.fromhex(host)[::-1])
            found.append((address.replace("0.0.0.0", "127.0.0.1"), int(port, 16)))
    return found


def asked(host: str, port: int) -> list[str]:
    """Return what a server has answered though it should not have."""
    got = []
    for method, path in _ASKED:
        with closing(http.client.HTTPConnection(host, port, timeout=20)) as client:
            try:
                client.request(method, path, b"{}" if method != "GET" else None)
                answer = client.getresponse()
                status, body = answer.status, answer.read(300)
            except (OSError, http.client.HTTPException):
                continue
        # The dashboard's page is the same for all; without a token it knows nothing.
        is_page = path == "/" and body.startswith(b"<!doctype html>")
        if path not in _OPEN and not is_page and status not in _REFUSALS:
            got.append(f"{method} {host}:{port}{path}: {status} {body!r}")
    return got


def owned_in(folder: str, uid: int) -> list[str]:
    """Return the victim's things in a folder that everybody shares; or his folder itself."""
    if os.stat(folder).st_uid == uid:
        return [folder]
    entries = os.scandir(folder)
    return [e.path for e in entries if e.stat(follow_symlinks=False).st_uid == uid]


def files(folders: list[str]) -> tuple[list[str], bytes]:
    """Return what can be written, and all that can be read."""
    writable, read = [], b""
    for top in folders:
        alone = [(os.path.dirname(top), [], [os.path.basename(top)])]
        for folder, names, plain in os.walk(top) if os.path.isdir(top) else alone:
            for name in (*names, *plain, ""):
                path = os.path.join(folder, name)
                if not os.path.islink(path) and os.access(path, os.W_OK):
                    writable.append(path)
            for name in plain:
                try:
                    with open(os.path.join(folder, name), "rb") as file:
                        read += file.read(1 << 20)
                except OSError:
                    continue
    return writable, read


def main(uid: int, folders: list[str], canaries: list[str]) -> None:
    """Try everything, and print what came of it as JSON."""
    theirs = processes(uid)
    environments, command_lines, signalled = [], b"", []
    for pid in theirs:
        try:
            command_lines += Path(f"/proc/{pid}/cmdline").read_bytes()
            environments.append(Path(f"/proc/{pid}/environ").read_bytes().decode("latin-1"))
        except OSError:
            pass
        try:
            os.kill(pid, signal.SIGTERM)
            signalled.append(pid)
        except OSError:
            pass
    ports = listening(uid)
    writable, read = files([own for folder in folders for own in owned_in(folder, uid)])
    seen = [c for c in canaries if c.encode() in command_lines + read]
    found = {
        "processes": len(theirs),
        "ports": len(ports),
        "environments": [e for e in environments if e],
        "signalled": signalled,
        "answers": [line for host, port in ports for line in asked(host, port)],
        "writable": writable,
        "canaries": seen,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3].split(","))
