"""The media types of Cosmos: one for each verb, direction and version. Pure.

``cosmos_calls`` uses them. Answers carry the version that the ``dcos`` CLI asks for.
"""

from __future__ import annotations

from local_dcos.errors import CosmosError

ERROR = "application/vnd.dcos.package.error+json;charset=utf-8;version=v1"
_VERSIONS = {"package.describe": "v3"}
#: Of these a client may ask for another version; what is answered fits both.
_OTHER_VERSIONS = {"package.install": "v2"}


def response(room: str, verb: str, accept: str = "") -> str:
    """Return the type of an answer; ``room`` is package or service, ``/`` in a verb becomes ``.``.

    ``accept`` is what the client takes. The ``dcos`` command of DC/OS 1.11 compares the whole type.

    >>> response("package", "repository/list")
    'application/vnd.dcos.package.repository.list-response+json;charset=utf-8;version=v1'
    """
    name = f"{room}.{verb.replace('/', '.')}"
    kind = f"application/vnd.dcos.{name}-response+json;charset=utf-8;version="
    other = _OTHER_VERSIONS.get(name)
    asked = accept.replace(" ", "").lower()
    return kind + (other if other and kind + other in asked else _VERSIONS.get(name, "v1"))


def check_request(room: str, verb: str, given: str | None) -> None:
    """Check the type of a request; its parameters may be written in any way. Raises CosmosError."""
    name = f"{room}.{verb.replace('/', '.')}"
    allowed = (f"application/vnd.dcos.{name}-request+json", "application/json")
    kind = (given or "application/json").partition(";")[0].strip().lower()
    if kind not in allowed:
        raise CosmosError(
            "UnsupportedContentType",
            f"Unsupported Content-Type: {kind} Accepted types: {', '.join(allowed)}",
        )
