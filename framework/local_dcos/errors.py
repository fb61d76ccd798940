"""The errors of Cosmos and Marathon, as their clients read them.

Raised by every module of the package, answered by ``http_application``. Types and texts are those
of Cosmos: clients choose their output by them.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

#: The User-Agent of the ``dcos`` CLI's requests to Cosmos.
_PRINTS_FORMATS = "dcos-client-go"


class CosmosError(Exception):
    """A refusal of Cosmos. ``kind`` is the member ``type`` of the answer."""

    def __init__(self, kind: str, message: str, data: Json | None = None, status: int = 400):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.data = data
        self.status = status

    def body(self, client: str = "") -> Json:
        """Return the answer's body; ``client`` is what the one that asked calls itself."""
        # It prints the message as a format: two per cent signs are one to it.
        doubled = client.startswith(_PRINTS_FORMATS)
        message = self.message.replace("%", "%%") if doubled else self.message
        found: Json = {"type": self.kind, "message": message}
        if self.data is not None:
            found["data"] = self.data
        return found


class MarathonError(Exception):
    """A refusal of Marathon: a status and a body."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.more = more

    def body(self) -> Json:
        """Return the answer's body."""
        return {"message": self.message, **self.more}


class AppChanged(MarathonError):
    """Another change came after the one that this change was made from."""

    def __init__(self, app_id: str) -> None:
        super().__init__(409, f"App [{app_id}] was changed meanwhile")


class InvalidApp(MarathonError):
    """An app definition that cannot run here. ``details`` name each path and what is wrong."""

    def __init__(self, details: list[tuple[str, str]]) -> None:
        self.details = details
        listed = [{"path": path, "errors": [text]} for path, text in details]
        super().__init__(422, "Object is not valid", details=listed)

    @property
    def text(self) -> str:
        """Return all details in one line."""
        return "; ".join(f"{path}: {text}" for path, text in self.details)
