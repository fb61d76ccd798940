"""The request of each command to the scheduler, and the printed answer.

Called by ``main`` with the parsed arguments. Requests and printed text are those that users and
scripts of DC/OS services know.
"""

from __future__ import annotations

import argparse
import json
import sys
import webbrowser
from typing import Any, Dict, Iterable, List, Mapping

from dcos_tensorflow.plugin import marathon_update, update_check
from dcos_tensorflow.plugin.client import CommandError, DcosCluster, HttpAnswer
from dcos_tensorflow.plugin.plain_text import escaped, json_text
from dcos_tensorflow.plugin.sdk_verbs import SdkVerb
from untrusted_input.package_options import merge


def sdk_verb(cluster: DcosCluster, given: argparse.Namespace) -> None:
    """Ask the scheduler for a verb of the SDK, and print the answer."""
    verb: SdkVerb = given.verb
    named = vars(given)
    body: Any = None
    if verb.body == "tasks":
        body = given.tasks or None
    elif verb.body == "parameters":
        body = _parameters(given.parameters or ())
    answer = cluster.scheduler(verb.method, verb.path_for(named), body)
    refusal = verb.refusal(named, answer)
    if refusal:
        raise CommandError(refusal)
    if not verb.is_answered(answer.status):
        _found(answer)
    if verb.lines is None or given.json:
        _show(answer)
    else:
        text = "\n".join(verb.lines(named, answer.json(), answer.text))
        print(escaped(text, lines=True))


def _parameters(given: Iterable[str]) -> Dict[str, str]:
    """Return the parameters of a plan, for the tasks that it launches."""
    found = {}
    for parameter in given:
        name, equals, value = parameter.partition("=")
        if not equals or not name:
            raise CommandError(f"A parameter must be NAME=VALUE, not {parameter}.")
        found[name] = value
    return found


def cluster_spec(cluster: DcosCluster, _: argparse.Namespace) -> None:
    """Print the ClusterSpec and its version."""
    _show(_found(cluster.scheduler("GET", "cluster")))


def why(cluster: DcosCluster, given: argparse.Namespace) -> None:
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


def options(cluster: DcosCluster, _: argparse.Namespace) -> None:
    """Print the options that the scheduler works with, secrets hidden."""
    found = _found(cluster.scheduler("GET", "configurations/target")).json()
    if not isinstance(found, dict) or "options" not in found:
        raise CommandError(f"The scheduler of {cluster.service} does not tell its options.")
    print(json_text(found["options"]))


def tensorboard(cluster: DcosCluster, given: argparse.Namespace) -> None:
    """Print where TensorBoard is, or open it in a browser."""
    answer = cluster.scheduler("GET", "endpoints/tensorboard")
    addresses = _found(answer, "TensorBoard: set service.use_tensorboard").json()["address"]
    if not addresses:
        raise CommandError("TensorBoard does not run yet; 'why' gives the reason.")
    url = f"http://{addresses[0]}"
    print(json.dumps({"url": url}) if given.json else escaped(url))
    if given.open and not webbrowser.open(url):
        raise CommandError(f"No browser could be opened; the address is {url}.")


def describe(cluster: DcosCluster, _: argparse.Namespace) -> None:
    """Print the options that the service runs with."""
    ours = update_check.options_in_force(cluster)
    found = _described(cluster)
    if "resolvedOptions" not in found:
        raise CommandError("The cluster does not tell the options of services.")
    options = update_check.laid_over(found["resolvedOptions"], ours)
    print(json_text(options, sort_keys=True))


def package_versions(cluster: DcosCluster, given: argparse.Namespace) -> None:
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


def update_start(cluster: DcosCluster, given: argparse.Namespace) -> None:
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
    cluster: DcosCluster, options: Mapping[str, Any], *, replace: bool
) -> Dict[str, Any]:
    """Return what to ask for, where options of before were refused: all of it, without those."""
    ours = {} if replace else update_check.options_in_force(cluster)
    stored = _described(cluster).get("userProvidedOptions") if ours else None
    if not isinstance(stored, dict):
        return {"options": options, "replace": replace}
    whole = merge(update_check.laid_over(stored, ours), options)
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


def _described(cluster: DcosCluster) -> Dict[str, Any]:
    answer = cluster.package_manager("describe", {"appId": cluster.service})
    if answer.status == 404:
        return marathon_update.describe(cluster)
    if answer.status != 200:
        raise CommandError(_refusal(cluster, answer))
    found = answer.json()
    return found if isinstance(found, dict) else {}


def _refusal(cluster: DcosCluster, answer: HttpAnswer) -> str:
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


def _found(answer: HttpAnswer, what: str = "such thing") -> HttpAnswer:
    if answer.status in (200, 202):
        return answer
    if answer.message:
        raise CommandError(answer.message)
    if answer.status == 404:
        raise CommandError(f"There is no {what}.")
    raise CommandError(
        f"The scheduler answers {answer.status} {answer.reason}: {answer.text.strip()[:500]}"
    )


def _show(answer: HttpAnswer) -> None:
    print(json_text(answer.json()))


def _print(lines: List[str]) -> None:
    print("\n".join(map(escaped, lines)))
