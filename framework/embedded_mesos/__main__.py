"""The command ``embedded-mesos``, and ``python -m embedded_mesos``: keeps a cluster in a folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from embedded_mesos import background_cluster
from embedded_mesos.background_process import BackgroundProcessError
from embedded_mesos.configuration import AgentConfig, alike

_LIKE = AgentConfig()


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command; return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        return _carried_out(given.command, given)
    except (BackgroundProcessError, OSError, ValueError) as error:
        print(f"embedded-mesos: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="embedded-mesos", description="A Mesos of one machine: a master and agents."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="start a cluster, or show the one that runs")
    up.add_argument("--agents", type=int, default=1, help="how many agents (default: 1)")
    for name, kind, unit in (
        ("cpus", float, "CPUs"),
        ("mem", float, "MB of memory"),
        ("disk", float, "MB of disk"),
        ("gpus", int, "GPUs"),
    ):
        usual = getattr(_LIKE, name)
        told = f"{unit} of each agent, counted and not limited (default: {usual})"
        up.add_argument(f"--{name}", type=kind, default=usual, help=told)
    up.add_argument("--port", type=int, default=0, help="the master's port (default: a free one)")
    status = commands.add_parser("status", help="show the cluster; exit status 1 when none runs")
    down = commands.add_parser("down", help="end the cluster and its tasks")
    # The process of a cluster: what it serves it is told by the one that starts it.
    serve = commands.add_parser("serve")
    for command in (up, status, down, serve):
        command.add_argument(
            "folder", type=Path, help="the folder of the cluster's state and sandboxes"
        )
    return parser


def _carried_out(command: str, given: argparse.Namespace) -> int:
    if command == "serve":
        background_cluster.serve(given.folder)
        return 0
    if command == "down":
        print("It is down." if background_cluster.down(given.folder) else "No cluster was running.")
        return 0
    if command == "up":
        like = AgentConfig(cpus=given.cpus, mem=given.mem, disk=given.disk, gpus=given.gpus)
        background_cluster.up(given.folder, alike(like, given.agents), port=given.port)
    found = background_cluster.status(given.folder)
    if found is None:
        print(f"No cluster runs in {given.folder}.")
        return 1
    print(f"master      {found.master}")
    print(f"principal   {found.credential.principal}")
    print(f"secret      in {background_cluster.credential_file(given.folder)}")
    for agent in found.agents:
        amounts = f"{agent.cpus:g} cpus, {agent.mem:g} MB, {agent.disk:g} MB of disk"
        print(f"agent       {agent.address}: {amounts}, {agent.gpus} gpus")
    return 0


if __name__ == "__main__":
    sys.exit(main())
