"""A rack of machines for the provider ``command``: they are agents of an embedded cluster.

``Rack`` fills it and says with which command it is switched; run as a program it is that command,
as an operator would write it (``list``, ``up``, ``down``; docs/machines.md). A machine that is up
is an agent which a ``FaultyCluster`` was told to start; one that goes down loses its power.
"""

import fcntl
import json
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Each machine has so many ports of this one.
PORTS = 50


class Rack:
    """Machines in ``folder``, which are not switched on yet.

    ``pools`` are as ``list`` answers them; ``available`` of them is how many machines there are.
    ``faults`` is where the cluster takes orders (``cluster_faults.background.up``).
    """

    def __init__(
        self, folder: Path, faults: str, pools: list[dict[str, Any]], first_port: int
    ) -> None:
        self._path = folder / "rack.json"
        rack = {"faults": faults, "pools": pools, "first_port": first_port, "machines": []}
        self._path.write_text(json.dumps(rack))

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-S", __file__, str(self._path)]

    @property
    def machines(self) -> list[dict[str, Any]]:
        # Not while another process writes it.
        with _opened(self._path) as rack:
            return list(rack["machines"])


@contextmanager
def _opened(path: Path) -> Iterator[dict[str, Any]]:
    """Give what the rack knows, to the process that is alone with it."""
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        rack = json.load(file)
        yield rack
        file.seek(0)
        json.dump(rack, file)
        file.truncate()


def _order(rack: dict[str, Any], fault: str, **arguments: Any) -> Any:
    body = json.dumps({"fault": fault, "arguments": arguments}).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{rack['faults']}/faults", body, timeout=60) as answer:
        return json.load(answer)["result"]


def _up(rack: dict[str, Any], order: dict[str, Any]) -> dict[str, Any]:
    began: list[dict[str, Any]] = []
    for wanted in order["pools"]:
        pool = next(p for p in rack["pools"] if _key(p) == _key(wanted))
        for _ in range(min(order["count"] - len(began), pool["available"])):
            pool["available"] -= 1
            began.append(_switched_on(rack, pool, order))
    return {"machines": [_shown(machine) for machine in began]}


def _switched_on(
    rack: dict[str, Any], pool: dict[str, Any], order: dict[str, Any]
) -> dict[str, Any]:
    number = len(rack["machines"]) + 1
    first_port = rack["first_port"] + PORTS * number
    machine = {
        "machine_id": f"rack-{number}",
        "purchase_id": order["purchase_id"],
        "owner": order["owner"],
        **{name: pool[name] for name in ("instance_type", "zone", "market")},
        "state": "running",
        "started_at": time.time(),
        "hostnames": [f"rack-{number}"],
    }
    attributes = {name: machine[name] for name in ("instance_type", "zone", "market")}
    machine["agent"] = _order(
        rack,
        "start_machine",
        address=f"127.0.1.{number}",
        hostname=machine["machine_id"],
        **pool["resources"],
        ports=[first_port, first_port + PORTS - 1],
        attributes={**attributes, "purchase_id": order["purchase_id"]},
        zone=pool["zone"],
    )
    rack["machines"].append(machine)
    return machine


def _down(rack: dict[str, Any], request: dict[str, Any]) -> None:
    for machine in rack["machines"]:
        if machine["machine_id"] in request["machine_ids"] and machine["state"] == "running":
            _order(rack, "lose_machine", agent=machine["agent"])
            machine["state"] = "ended"
            pool = next(p for p in rack["pools"] if _key(p) == _key(machine))
            pool["available"] += 1


def _list(rack: dict[str, Any]) -> dict[str, Any]:
    return {"machines": [_shown(m) for m in rack["machines"]], "pools": rack["pools"]}


def _shown(machine: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in machine.items() if name != "agent"}


def _key(of: dict[str, Any]) -> tuple[str, ...]:
    return of["instance_type"], of["zone"], of["market"]


def _main(path: Path, verb: str) -> None:
    request = json.load(sys.stdin)
    with _opened(path) as rack:
        if verb == "up":
            print(json.dumps(_up(rack, request)))
        elif verb == "down":
            _down(rack, request)
        else:
            print(json.dumps(_list(rack)))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2])
