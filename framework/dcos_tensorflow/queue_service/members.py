"""The callers of a queue: members of teams by their team's token or as users of DC/OS, operators.

Used by the API (``app``) and its ``Access``. The file of teams names them; it may change at
any time. Keeps no token but those of the file.
"""

from __future__ import annotations

import hmac
import ssl
from functools import partial
from pathlib import Path

from dcos_tensorflow.api.callers.access import Caller, Right
from dcos_tensorflow.api.callers.dcos_tokens import DcosTokens, KeyFile, KeyService
from dcos_tensorflow.queue_service.jobs import Asker, Refused
from dcos_tensorflow.queue_service.teams_file import Membership

_TEAM, _USER = "team:", "dcos:"


class Members:
    """The members of all teams (``api.callers.access.Logins``). Thread-safe."""

    def __init__(self, membership: Membership, ca_file: str = "") -> None:
        self._ca_file = ca_file
        self.are(membership)

    def are(self, membership: Membership) -> None:
        """Take the members as they are now."""
        place = membership.keys
        users: DcosTokens | None = None
        if place:
            tls = partial(ssl.create_default_context, cafile=self._ca_file or None)
            is_service = place.startswith("https://")
            keys = KeyService(place, tls) if is_service else KeyFile(Path(place))
            users = DcosTokens(keys, {*membership.users, *membership.operators})
        self._known = membership, users

    def caller(self, token: str) -> Caller | None:
        """Return whose token that is; None for an unknown one."""
        membership, users = self._known
        sent = token.encode("utf-8", "replace")
        found = [
            team
            for team, known in membership.tokens.items()
            if hmac.compare_digest(sent, known.encode())
        ]
        if found:
            return Caller(f"{_TEAM}{found[0]}", Right.OPERATE)
        return users.caller(token) if users is not None else None

    def asker(self, caller: Caller) -> Asker:
        """Return for which team a caller asks. Raises Refused for who is no member any more."""
        membership, _ = self._known
        kind, name = caller.name[: len(_USER)], caller.name[len(_USER) :]
        if kind == _TEAM:
            return Asker(caller.name, name)
        if kind != _USER or name in membership.operators:
            return Asker(caller.name)
        if name not in membership.users:
            raise Refused(f"{name} is a member of no team", 403)
        return Asker(caller.name, membership.users[name])
