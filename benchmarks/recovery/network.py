"""A private network for one run: a bridge, and one namespace per agent whose link can be cut.

The run itself is in a network namespace of its own, so that nothing of the machine's network is
touched and no port is taken twice. Needs root, unshare(1) and ip(8); without root the run stays
where it is, its agents share the loopback, and no machine can vanish silently.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType

_INSIDE = "RECOVERY_BENCHMARK_NETWORK"
_BRIDGE = "bridge0"


def enter(arguments: Sequence[str]) -> None:
    """Start this program again in a network namespace of its own, if that can be done."""
    if _INSIDE in os.environ or os.geteuid() != 0:
        return
    command = ["unshare", "--net", "--", sys.executable, "-m", "benchmarks.recovery", *arguments]
    os.execvpe("unshare", command, {**os.environ, _INSIDE: "1"})


def available() -> bool:
    """Say whether this process is in a namespace of its own."""
    return _INSIDE in os.environ


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def prepare() -> None:
    """Make loopback and bridge."""
    _ip("link", "set", "lo", "up")
    _ip("link", "add", _BRIDGE, "type", "bridge")
    _ip("addr", "add", "10.77.0.1/24", "dev", _BRIDGE)
    _ip("link", "set", _BRIDGE, "up")


class Machines:
    """The network of so many machines. A context manager: makes the namespaces, removes them."""

    def __init__(self, count: int) -> None:
        self._names = [f"recovery-{os.getpid()}-{index}" for index in range(count)]
        self.addresses = [f"10.77.0.{index + 2}" for index in range(count)]

    def __enter__(self) -> Machines:
        for index, (name, address) in enumerate(zip(self._names, self.addresses, strict=True)):
            _ip("netns", "add", name)
            _ip("link", "add", f"link{index}", "type", "veth", "peer", "eth0", "netns", name)
            _ip("link", "set", f"link{index}", "master", _BRIDGE, "up")
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", name, "link", "set", device, "up")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for index, name in enumerate(self._names):
            _ip("link", "delete", f"link{index}")
            _ip("netns", "delete", name)

    def namespace(self, index: int) -> str:
        """Return the path of a machine's namespace."""
        return f"/run/netns/{self._names[index]}"

    def cut(self, index: int) -> None:
        """Let nothing reach a machine, and nothing leave it, without a message."""
        _ip("link", "set", f"link{index}", "down")

    def mend(self, index: int) -> None:
        """Put the link back."""
        _ip("link", "set", f"link{index}", "up")
