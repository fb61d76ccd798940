"""What each command asks of the scheduler, and what it prints of the answer.

Called by ``main`` with the parsed arguments. Requests and printed text are those that users and
scripts of DC/OS services know.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.parse
import webbrowser
from typing import Any, Dict, List, Mapping, Optional

from dcos_tensorflow.plugin import in_force, marathon_update, update_check
from dcos_tensorflow.plugin.client import Answer, Cluster
from dcos_tensorflow.plugin.errors import CommandError
from dcos_tensorflow.plugin.plain_text import escaped, json_text
from dcos_tensorflow.plugin.trees import plan_lines, pod_lines, pods_lines

#: The verbs of plans: what is asked of the scheduler, and how its being done is told.
_PLAN_VERBS = {
    "pause": ("interrupt", "paused"),
    "resume": ("continue", "resumed"),
    "force-restart": ("restart", "restarted"),
    "force-complete": ("forceComplete", "forced to complete"),
}


def plan_status(cluster: Cluster, given: argparse.Namespace) -> None:
    """Print one plan."""
    answer = cluster.scheduler("GET", f"plans/{_quoted(given.plan)}")
    # 202: in progress. 417: it has errors, which are part of the answer.
    plan = _plan_found(answer, 200, 202, 417)
    if given.json:
        _show(plan)
    else:
        _print(plan_lines(given.plan, plan.json()))


def plan_start(cluster: Cluster, given: argparse.Namespace) -> None:
    """Start a plan, with parameters for the tasks that it launches."""
    body = {}
    for parameter in given.parameters or ():
        name, equals, value = parameter.partition("=")
        if not equals or not name:
            raise CommandError(f"A parameter must be NAME=VALUE, not {parameter}.")
        body[name] = value
    _show(_plan_found(cluster.scheduler("POST", f"plans/{_quoted(given.plan)}/start", body)))


def plan_stop(cluster: Cluster, given: argparse.Namespace) -> None:
    """Stop a plan and set its steps back."""
    _show(_plan_found(cluster.scheduler("POST", f"plans/{_quoted(given.plan)}/stop")))


def plan_verb(cluster: Cluster, given: argparse.Namespace) -> None:
    """Pause, resume, restart or complete a plan, a phase or a step."""
    verb, done = _PLAN_VERBS[given.verb]
    phase: Optional[str] = getattr(given, "phase", None)
    step: Optional[str] = getattr(given, "step", None)
    answer = _plan_found(
        cluster.scheduler("POST", f"plans/{_quoted(given.plan)}/{verb}", phase=phase, step=step)
    )
    what = f'"{given.plan}" plan'
    if step is not None:
        what += f': step "{step}" in phase "{phase}"'
    elif phase is not None:
        what += f': phase "{phase}"'
    found = answer.json()
    if not isinstance(found, dict) or "message" not in found:
        raise CommandError(f"{what} could not be {done}: {answer.text.strip()[:500]}")
    if given.json:
        _show(answer)
    else:
        print(f"{what} has been {done}.")


def pod_status(cluster: Cluster, given: argparse.Namespace) -> None:
    """Print the tasks of all pods, or of one instance."""
    one = f"/{_quoted(given.pod)}" if given.pod else ""
    answer = _found(cluster.scheduler("GET", f"pod{one}/status"), given.pod)
    if given.json:
        _show(answer)
    else:
        _print(pod_lines(answer.json()) if given.pod else pods_lines(answer.json()))


def pod_verb(cluster: Cluster, given: argparse.Namespace) -> None:
    """Restart, replace, pause or resume one instance."""
    tasks: Optional[List[str]] = getattr(given, "tasks", None)
    path = f"pod/{_quoted(given.pod)}/{given.verb}"
    _show(_found(cluster.scheduler("POST", path, tasks or None), given.pod))


def endpoints(cluster: Cluster, given: argparse.Namespace) -> None:
    """Print the names of the endpoints, or where one of them is."""
    if not given.endpoint:
        _show(_found(cluster.scheduler("GET", "endpoints")))
        return
    path = f"endpoints/{_quoted(given.endpoint)}"
    answer = _found(cluster.scheduler("GET", path), given.endpoint)
    if given.json:
        _show(answer)
    else:
        print(escaped(answer.text, lines=True))


def show(cluster: Cluster, given: argparse.Namespace) -> None:
    """Print what the scheduler answers as it is; ``{}`` in the path is for the item."""
    item: Optional[str] = getattr(given, "item", None)
    path = given.path.format("" if item is None else _quoted(item))
    _show(_found(cluster.scheduler(given.method, path), item))


def why(cluster: Cluster, given: argparse.Namespace) -> None:
    """Print why the job is not further."""
    answer = _found(cluster.scheduler("GET", "why"))
    if given.json:
        _show(answer)
        return
    found = answer.json()
    if found.get("not_updated"):
        _print([f"{cluster.service}: {found['not_updated']}"])
    _print([f"{cluster.service} is {found['phase']}: {found['why']}"])
    for task, each in found.get("tasks", {}).items():
        _print([f"  {task}: {each.get('why', '')}"])
    for wait in found.get("waits", ()):
        _print([f"  {wait.get('told', '')}"])
    for who, told in found.get("machines", {}).items():
        _print([f"  no machine is bought for {who}: {told}"])
    for silent in found.get("silent_agents", ()):
        _print([f"  {silent.get('told', '')}"])


def options(cluster: Cluster, _: argparse.Namespace) -> None:
    """Print the options that the scheduler works with, secrets hidden."""
    found = _found(cluster.scheduler("GET", "configurations/target")).json()
    if not isinstance(found, dict) or "options" not in found:
        raise CommandError(f"The scheduler of {cluster.service} does not tell its options.")
    print(json_text(found["options"]))


def tensorboard(cluster: Cluster, given: argparse.Namespace) -> None:
    """Print where TensorBoard is, or open it in a browser."""
    answer = cluster.scheduler("GET", "endpoints/tensorboard")
    addresses = _found(answer, "TensorBoard: set service.use_tensorboard").json()["address"]
    if not addresses:
        raise CommandError("TensorBoard does not run yet; 'why' gives the reason.")
    url = f"http://{addresses[0]}"
    print(json.dumps({"url": url}) if given.json else escaped(url))
    if given.open and not webbrowser.open(url):
        raise CommandError(f"No browser could be opened; the address is {url}.")


def describe(cluster: Cluster, _: argparse.Namespace) -> None:
    """Print the options that the service runs with."""
    ours = in_force.differing(cluster)
    found = _described(cluster)
    if "resolvedOptions" not in found:
        raise CommandError("The cluster does not tell the options of services.")
    options = in_force.laid_over(found["resolvedOptions"], ours)
    print(json_text(options, sort_keys=True))


def package_versions(cluster: Cluster, given: argparse.Namespace) -> None:
    """Print the version of the package, and those it can be changed to."""
    found = _described(cluster)
    if given.json:
        version = found.get("package", {}).get("version")
        ways = {way: found.get(way) or [] for way in ("downgradesTo", "upgradesTo")}
        print(json.dumps({"version": version, **ways}, indent=2))
        return
    print(f"Current package version is: {found.get('package', {}).get('version')}")
    for kind in ("downgrade", "upgrade"):
        versions = found.get(f"{kind}sTo") or []
        if versions:
            print(f"Package can be {kind}d to: {json.dumps(versions)}")
        else:
            print(f"No valid package {kind} versions.")


def update_start(cluster: Cluster, given: argparse.Namespace) -> None:
    """Change the options of the service, its package's version, or both."""
    body: Dict[str, Any] = {"appId": cluster.service, "replace": given.replace}
    if given.options:
        body["options"] = _options(given.options)
    if given.package_version:
        body["packageVersion"] = given.package_version
    if len(body) == 2:
        raise CommandError("Nothing to change: give --options, --package-version or both.")
    if "options" in body and not given.package_version:
        # The package manager knows the package's rules alone. Of another version of the package
        # the scheduler that runs knows nothing.
        body.update(_over_those_in_force(cluster, body["options"], replace=given.replace))
        update_check.ask(cluster, body["options"], replace=body["replace"])
    answer = cluster.package_manager("update", body)
    if answer.status == 404:
        if given.package_version:
            raise CommandError("This cluster's package manager cannot change versions.")
        changed = marathon_update.update(cluster, body["options"], replace=body["replace"])
    elif answer.status == 200:
        changed = answer.json()
    else:
        raise CommandError(_refusal(cluster, answer))
    if given.json:
        print(json_text(changed))
        return
    print(
        f"Update started. Please use `dcos tensorflow --name={cluster.service} update status` to"
        " view progress."
    )


def _over_those_in_force(
    cluster: Cluster, options: Mapping[str, Any], *, replace: bool
) -> Dict[str, Any]:
    """Return what to ask for, where options of before were refused: all of it, without those."""
    ours = {} if replace else in_force.differing(cluster)
    stored = _described(cluster).get("userProvidedOptions") if ours else None
    if not isinstance(stored, dict):
        return {"options": options, "replace": replace}
    whole = update_check.merge(in_force.laid_over(stored, ours), options)
    return {"options": whole, "replace": True}


def _options(file: str) -> Dict[str, Any]:
    try:
        if file == "stdin":
            found = json.load(sys.stdin)
        else:
            with open(file, encoding="utf-8") as opened:
                found = json.load(opened)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CommandError(f"{file} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise CommandError(f"{file} holds no JSON object.")
    return found


def _described(cluster: Cluster) -> Dict[str, Any]:
    answer = cluster.package_manager("describe", {"appId": cluster.service})
    if answer.status == 404:
        return marathon_update.describe(cluster)
    if answer.status != 200:
        raise CommandError(_refusal(cluster, answer))
    found = answer.json()
    return found if isinstance(found, dict) else {}


def _refusal(cluster: Cluster, answer: Answer) -> str:
    """Return why the package manager refuses, in words."""
    if answer.status in (401, 403):
        return f"The cluster refuses this ({answer.status}); log in with 'dcos auth login'."
    try:
        problem = json.loads(answer.text)
        kind, data = problem["type"], problem.get("data") or {}
        message = problem["message"]
    except (ValueError, KeyError, TypeError, AttributeError):
        told = answer.message or answer.text.strip()[:200]
        return f"The package manager answers {answer.status} {answer.reason}: {told}"
    if kind == "JsonSchemaMismatch":
        return marathon_update.refusal(cluster.service, problem)
    if kind == "AppIdChanged":
        return (
            f"The name of an installed service cannot change from {data.get('oldAppId')} to"
            f" {data.get('newAppId')}: set service.name to {data.get('oldAppId')}."
        )
    if kind == "BadVersionUpdate":
        versions = ", ".join(data.get("validVersions") or ()) or "none"
        return f"There is no way to version {data.get('updateVersion')}; possible: {versions}."
    if kind == "MarathonAppNotFound":
        return f"There is no service {cluster.service} on this cluster."
    return f"{message} ({kind})"


def _plan_found(answer: Answer, *statuses: int) -> Answer:
    if answer.status == 208:
        raise CommandError(
            "Cannot execute command. Command has already been issued or the plan has completed."
        )
    if answer.status == 404 and not answer.message:
        raise CommandError("Plan, phase, and/or step does not exist.")
    return _found(answer, None, *statuses)


def _found(answer: Answer, what: Optional[str] = None, *statuses: int) -> Answer:
    if answer.status in (statuses or (200, 202)):
        return answer
    if answer.message:
        raise CommandError(answer.message)
    if answer.status == 404:
        raise CommandError(f"There is no {what}." if what else "There is no such thing.")
    raise CommandError(
        f"The scheduler answers {answer.status} {answer.reason}: {answer.text.strip()[:500]}"
    )


def _show(answer: Answer) -> None:
    print(json_text(answer.json()))


def _print(lines: List[str]) -> None:
    print("\n".join(map(escaped, lines)))


def _quoted(part: str) -> str:
    return urllib.parse.quote(part, safe="")
