"""The caller of a Mesos master or agent: a value, which needs nothing of how they are called."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import field

from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Credentials:
    """A Mesos principal and its secret, sent as HTTP basic authentication (RFC 7617, UTF-8)."""

    principal: str = ""
    secret: str = field(default="", repr=False)

    def header(self) -> dict[str, str]:
        """Return the Authorization header; empty without a principal."""
        if not self.principal:
            return {}
        token = base64.b64encode(f"{self.principal}:{self.secret}".encode()).decode("ascii")
        return {"Authorization": f"Basic {token}"}

    def refused(self, header: Mapping[str, str]) -> bool:
        """Say that another try would go with the same header."""
        return False
