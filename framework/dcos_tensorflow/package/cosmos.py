"""Package and options to a Marathon app, step by step as DC/OS' package manager Cosmos does it.

Called by ``package render``. The rules are those of the Cosmos that the local DC/OS has. Options
are judged by the package's ``config.json`` alone, as on a cluster; what only the scheduler can
judge, it judges when it starts. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.options import OptionProblem, OptionsError
from dcos_tensorflow.package.definition import Package
from local_dcos import RenderError, render_app, violations
from untrusted_input.package_options import defaults, merge


def marathon_app(
    package: Package, options: Mapping[str, Any], *, app_id: str = ""
) -> dict[str, Any]:
    """Return the Marathon app of ``package`` with the user's ``options``.

    ``app_id`` takes the place of the template's id and of nothing else. Raises OptionsError naming
    every wrong option's path, RenderError when the package itself is at fault.
    """
    merged = effective_options(package, options)
    try:
        app = render_app(package.template, merged, package.resource)
    except RenderError as error:
        raise RenderError(error.kind, f"{package.name}: {error}") from error
    return {**app, "id": app_id} if app_id else app


def effective_options(package: Package, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``options`` laid over the package's defaults. Raises OptionsError."""
    merged = merge(defaults(package.config), options)
    problems = [
        OptionProblem(".".join(wrong.path), wrong.message, wrong.given, suggestion=wrong.suggestion)
        for wrong in violations(package.config, merged)
    ]
    if problems:
        raise OptionsError(problems)
    return merged
