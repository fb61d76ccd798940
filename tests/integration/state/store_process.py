"""A process that uses a state store as it is told, one JSON command a line.

Started by the tests beside it with the store's URL, the service's name and the
length of a ZooKeeper session in seconds. It has no tests.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from dcos_tensorflow.core.actions import Write
from dcos_tensorflow.state.store import StateError, StateStore, open_store


def main() -> None:
    store = open_store(sys.argv[1], sys.argv[2], zookeeper_session_seconds=float(sys.argv[3]))
    losses: list[str] = []
    say("ready")
    for line in sys.stdin:
        try:
            say(answer(store, losses, *json.loads(line)))
        except StateError as error:
            say([type(error).__name__, str(error)])


def answer(store: StateStore, losses: list[str], command: str, *arguments: Any) -> Any:
    if command == "lead":
        store.lead("child", arguments[0], losses.append)
        return "leads"
    if command == "commit":
        store.commit([Write(path, text.encode()) for path, text in arguments[0].items()])
        return "committed"
    if command == "commit for ever":
        for number in range(10**9):
            text = str(number).encode()
            store.commit([Write("First", text), Write("Folder/Second", text)])
            say(number)
    if command == "commit a huge one":
        say("begins")
        value = b"x" * 400_000
        store.commit([Write(f"Part/{number:04}", value) for number in range(arguments[0])])
        return "committed"
    if command == "losses":
        return losses
    raise ValueError(command)


def say(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
