"""Asks the scheduler of a service whether it can go over to other options, before anything changes.

Called by ``commands`` before the cluster's package manager gets options, and by
``marathon_update``. A package manager knows the package's rules and no more: a placement rule that
is none, or a strategy that a running job cannot change to, it would hand on to a scheduler that
then ends. And it keeps the last options that it was given: where the scheduler has refused those,
the options in force are those of before, which are to be shown, and to lay further options over.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, Mapping

from dcos_tensorflow.plugin.client import CommandError, DcosCluster, HttpAnswer
from dcos_tensorflow.plugin.plain_text import escaped
from untrusted_input.package_options import defaults, merge

Json = Dict[str, Any]


def ask(cluster: DcosCluster, given: Mapping[str, Any], *, replace: bool) -> None:
    """Check ``given``, laid over the options in force unless these are to be forgotten.

    A scheduler that is away is not asked: what the package manager refuses itself is left to it.
    Raises CommandError.
    """
    answer = cluster.package_manager("describe", {"appId": cluster.service})
    found = problem_in(answer)
    if answer.status != 200:
        return
    if replace:
        config = (found.get("package") or {}).get("config")
        under = defaults(config) if isinstance(config, dict) else None
    else:
        under = found.get("resolvedOptions")
    if isinstance(under, dict):
        check(cluster, merge(under, given))


def check(cluster: DcosCluster, options: Json) -> None:
    """Ask the scheduler, unless it cannot be asked: its options can be mended all the same.

    The cluster starts another scheduler with them, for which the code may lie elsewhere on its
    machine. Raises CommandError.
    """
    answer = cluster.scheduler_if_up("POST", "job/check?restart=true", options)
    if answer is None:
        print(
            f"The scheduler of {cluster.service} does not answer: only the package's own rules were"
            " checked.",
            file=sys.stderr,
        )
        return
    # 404: a scheduler of before there was this check.
    if answer.status in (200, 208, 404):
        return
    body = problem_in(answer)
    problems = body.get("problems")
    if isinstance(problems, list):
        rows = [f"  {_line(one)}" for one in problems]
        raise CommandError("\n".join([f"The options do not fit {cluster.service}:", *rows]))
    raise CommandError(f"{cluster.service} cannot be changed so: {body.get('message')}")


def problem_in(answer: HttpAnswer) -> Json:
    """Return an answer's JSON object; its text as a message when it is none."""
    try:
        found = json.loads(answer.text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"message": answer.text[:300]}


def _line(problem: Mapping[str, Any]) -> str:
    told = [f"{word}: {problem[word]}" for word in ("given", "allowed") if problem.get(word)]
    details = f" ({'; '.join(told)})" if told else ""
    path = f"{problem['path']}: " if problem.get("path") else ""
    return f"{path}{problem.get('message', '')}{details}"


def options_in_force(cluster: DcosCluster) -> Json:
    """Return option -> its value in force, where the newest were refused; say why they were.

    Empty when they were not, or the scheduler cannot be asked.
    """
    answer = cluster.scheduler_if_up("GET", "configurations/target", None)
    refused = problem_in(answer).get("refused") if answer and answer.status == 200 else None
    if not isinstance(refused, dict):
        return {}
    why = escaped(str(refused.get("why")))
    print(
        f"The newest options of {cluster.service} are refused, and those before stay in force:"
        f" {why}",
        file=sys.stderr,
    )
    found = refused.get("in_force")
    return found if isinstance(found, dict) else {}


def laid_over(options: Mapping[str, Any], in_force: Mapping[str, Any]) -> Json:
    """Return ``options`` with the values in force; those that are not in force are left out."""
    found: Json = dict(options)
    for name, value in in_force.items():
        found = _with(found, name.split("."), value)
    return found


def _with(options: Mapping[str, Any], path: Any, value: Any) -> Json:
    found, key = dict(options), path[0]
    if len(path) > 1:
        below = found.get(key)
        found[key] = _with(below if isinstance(below, dict) else {}, path[1:], value)
    elif value is None:
        found.pop(key, None)
    else:
        found[key] = value
    return found
