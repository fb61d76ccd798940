"""A process that uses a state store as it is told, one JSON command a line.

Started by the tests beside it with the store's URL, the service's name and the
length of a ZooKeeper session in seconds. It has no tests.
"""

import itertools
import json
import signal
import sys
from typing import Any

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.state.errors import StateError
from dcos_tensorflow.state.sqlite import SqliteStore
from dcos_tensorflow.state.store import StateStore, open_store

#: A huge commit says that it has begun when it comes to the one step, and never ends: it stays at
#: the other. A kill meanwhile may hit it anywhere, but not after its end. That is early:
#: all of it would be too much for the small heap of a server for tests.
TELLS_AT, STAYS_AT = 2, 10


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
        never_end_a_commit(store)
        value = b"x" * 400_000
        store.commit([Write(f"Part/{number:04}", value) for number in range(arguments[0])])
        return "committed"
    if command == "losses":
        return losses
    raise ValueError(command)


def never_end_a_commit(store: StateStore) -> None:
    """See ``TELLS_AT``; a step is a write in SQLite, and a transaction in ZooKeeper."""
    name = "_apply" if isinstance(store, SqliteStore) else "_transact"
    step = getattr(store, name)
    numbers = itertools.count(1)

    def step_and_tell(*arguments: Any) -> None:
        number = next(numbers)
        if number == TELLS_AT:
            say("has begun")
        while number == STAYS_AT:
            signal.pause()
        step(*arguments)

    setattr(store, name, step_and_tell)


def say(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
