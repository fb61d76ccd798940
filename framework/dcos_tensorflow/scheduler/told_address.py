"""The address of the leading scheduler's API, kept in the state store beside its service.

Written by ``scheduler.scheduler`` when it begins to lead; read by ``client.state_services``, which
finds services by their state. It decides nothing, and holds no token. The state of an
earlier release has no address.
"""

from __future__ import annotations

import json
import socket
from dataclasses import asdict

from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.leadership import Holder
from untrusted_input.json_text import read_json


@dataclass(frozen=True)
class ToldAddress:
    """What a leader has told of itself."""

    #: As clients on other machines reach it: ``https://host:port``, or ``http://``.
    url: str
    #: Whose address it is: after a crash another scheduler leads, and has not told its own yet.
    leader: Holder

    def write(self) -> Write:
        """Return what keeps it."""
        text = json.dumps({"url": self.url, "leader": asdict(self.leader)}, sort_keys=True)
        return Write(paths.ADDRESS, text.encode())

    @staticmethod
    def read(value: bytes) -> ToldAddress | None:
        """Return what was kept; None for what is no address."""
        try:
            values = read_json(value)
            leader = Holder.from_bytes(json.dumps(values["leader"]).encode())
            return ToldAddress(str(values["url"]), leader)
        except (ValueError, KeyError, TypeError):
            return None


def url_from(address: str, advertised: str, scheme: str = "http") -> str:
    """Return where an API at an address of this machine is asked from other machines."""
    host, _, port = address.rpartition(":")
    if not advertised and host in ("0.0.0.0", "[::]", "::"):
        host = socket.getfqdn()
    return f"{scheme}://{advertised or host}:{port}"
