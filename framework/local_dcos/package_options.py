"""A package's options as Cosmos answers for them: the whole of them, or what is wrong. Pure.

Called by ``rendering``. What is right and wrong is ``package.cosmos``' to
say; here it becomes the error that Cosmos' clients read.
"""

from __future__ import annotations

from typing import Any

from dcos_tensorflow.options import OptionProblem
from dcos_tensorflow.package.cosmos import Violation, violations
from dcos_tensorflow.plugin.update_check import defaults, merge
from local_dcos.errors import CosmosError

Json = dict[str, Any]


def resolved(schema: Json | None, options: Json | None) -> Json:
    """Return the whole options.

    Raises CosmosError, JsonSchemaMismatch, which names each wrong option in message and data.
    """
    if schema is None:
        if options:
            raise _mismatch(
                [{"message": "No schema available to validate the provided options"}],
                "the package has no config.json, so it takes no options",
            )
        return {}
    whole = merge(defaults(schema), options or {})
    wrong = violations(schema, whole)
    if wrong:
        raise _mismatch([_entry(one) for one in wrong], "; ".join(map(_line, wrong)))
    return whole


def _mismatch(errors: list[Json], text: str) -> CosmosError:
    # Clients that look for Cosmos' words find them first; the dcos CLI prints the message alone.
    message = f"Options JSON failed validation: {text}"
    return CosmosError("JsonSchemaMismatch", message, {"errors": errors})


def _line(wrong: Violation) -> str:
    problem = OptionProblem(
        _pointer(wrong.path) or "/", wrong.message, wrong.given, suggestion=wrong.suggestion
    )
    return str(problem)


def _entry(wrong: Violation) -> Json:
    return {
        "level": "error",
        "schema": {"loadingURI": "#", "pointer": _pointer(wrong.rule_path)},
        "instance": {"pointer": _pointer(wrong.path)},
        "domain": "validation",
        "keyword": wrong.rule,
        "message": wrong.message,
    }


def _pointer(path: tuple[str, ...]) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)
