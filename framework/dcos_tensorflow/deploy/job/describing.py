"""The tasks that a service is going to run, as a document and as text. Used by ``validate``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dcos_tensorflow.client.wording import amounts, table
from dcos_tensorflow.core.cluster.rendering import (
    recovery_strategy,
    rendered_strategy,
    server_definition,
)
from dcos_tensorflow.core.cluster.rendering import tf_config as render_tf_config
from dcos_tensorflow.core.cluster.storage_sections import checkpoints_place
from dcos_tensorflow.core.contract import CONTRACT_FUNCTION
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.restarts import outcome
from dcos_tensorflow.core.spec.service_spec import (
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
    UnitKind,
)
from dcos_tensorflow.core.spec.workload_spec import EarlyStopping, SweepSpec
from dcos_tensorflow.deploy.embedded.fitting import needed_resources
from dcos_tensorflow.deploy.embedded.interpreters import found_here
from dcos_tensorflow.deploy.job.deployment import PreparedJob
from dcos_tensorflow.task.checkpoints import restorable

_UNITS = {UnitKind.TRIAL: "sweep", UnitKind.SHARD: "batch"}


def document(prepared: PreparedJob, *, local: bool) -> dict[str, Any]:
    """Return what would run, as JSON; ``local`` is on the embedded cluster."""
    spec = prepared.spec
    strategy, strategy_from = _strategy(prepared)
    pythons = {role.python for role in spec.roles}
    return {
        "service": spec.name,
        "local": local,
        "contract": prepared.code.contract,
        "strategy": strategy,
        "strategy_from": strategy_from,
        "outcome": str(spec.outcome),
        "deciding_tasks": list(outcome.deciding_tasks(spec)),
        "job": {
            "url": spec.job.uri,
            "name": spec.job.name,
            "command": spec.job.command,
            "arguments": list(spec.job.arguments),
            "checkpoint_dir": spec.job.checkpoint_dir,
            "shared_filesystem": spec.job.shared_filesystem,
            "checkpoints": checkpoints_place(spec),
            "goes_on_from": _newest_checkpoint(spec) if local else "",
            "volume": next((r.volume.path for r in spec.roles if r.volume is not None), ""),
            "data": [asdict(data) for data in spec.storage.data],
        },
        "roles": [_role(role, prepared.tensorflow.get(role.role, "")) for role in spec.roles],
        "tasks": list(spec.task_names()),
        "total": asdict(needed_resources(spec)),
        "cluster_spec": _members(spec),
        "units": units_of(spec),
        # Which TensorFlow was found is said of the roles.
        "notes": [n for n in prepared.notes if n not in map(found_here, pythons)],
    }


def lines(described: Mapping[str, Any]) -> list[str]:
    """Return the document as text for a person."""
    job, roles = described["job"], described["roles"]
    code = shlex.join([job["name"], *job["arguments"]]) if job["name"] else job["command"]
    where = "on this machine" if described["local"] else "on Mesos"
    tasks = counted(len(described["tasks"]), "task")
    units = described["units"]
    slots = f" for each {units['kind']} at a time" if units else ""
    found = [f"{described['service']} would run {tasks} {where}{slots}:"]
    found += table([(f"{role['count']} {role['role']}", _needs(role)) for role in roles])
    found.append("")
    members = "; ".join(
        f"{kind}: {', '.join(names)}" for kind, names in described["cluster_spec"].items()
    )
    rows = [
        ("together", amounts(**described["total"])),
        *((_UNITS[units["kind"]], text) for text in _told_units(units)),
        ("job", f"{code} from {job['url']}" if job["url"] else code),
        ("contract", _contract(described["contract"], bool(members))),
        ("strategy", f"{described['strategy']}: {described['strategy_from']}"),
        *(("runs with", text) for text in _interpreters(roles)),
        ("ClusterSpec", members or "none: each task trains by itself"),
        ("outcome", f"decided by {', '.join(described['deciding_tasks'])}"),
        ("checkpoints", _checkpoints(job)),
        *(("data", f"{data['uri']} at {data['path']}") for data in job["data"]),
        *(("TensorBoard", _address(r)) for r in roles if r["role"] == TaskRole.TENSORBOARD),
    ]
    return [*found, *table(rows, indent=""), *(f"note: {note}" for note in described["notes"])]


def units_of(spec: ServiceSpec) -> dict[str, Any]:
    """Return what the units of a sweep or batch are, ``count`` None where it is not known yet."""
    work = spec.workload
    if spec.units is None or work is None:
        return {}
    shared = {"kind": str(spec.units.kind), "parallelism": spec.units.parallelism or "auto"}
    if isinstance(work, SweepSpec):
        return {
            **shared,
            "count": work.trials,
            "method": str(work.method),
            "parameters": [parameter.name for parameter in work.parameters],
            "objective": {"metric": work.metric, "goal": str(work.goal)},
            "early_stopping": str(work.early_stopping),
        }
    count = None if work.listing else -(-(work.end - work.begin) // work.per_shard)
    return {
        **shared,
        "count": count,
        "inputs": work.listing or f"{work.begin} to {work.end}",
        "per_shard": work.per_shard,
        "output": work.output,
    }


def _told_units(units: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the units are, as text for a person; nothing for a job of its own."""
    if not units:
        return
    pace = told_pace(units)
    if units["kind"] == UnitKind.TRIAL:
        objective = units["objective"]
        yield (
            f"{told_count(units)} by {units['method']}, {pace} at a time: "
            f"{objective['goal']} {objective['metric']} over {', '.join(units['parameters'])}"
        )
        if units["early_stopping"] != EarlyStopping.NONE:
            yield f"bad trials are stopped early by {units['early_stopping']}"
        return
    yield f"{told_count(units)} of {units['per_shard']} of {units['inputs']}, {pace} at a time"
    yield f"into {units['output']}"


def told_count(units: Mapping[str, Any]) -> str:
    """Return how many units there are, as far as that is known."""
    kind, count = units["kind"], units["count"]
    return f"{kind}s" if count is None else counted(count, kind)


def told_pace(units: Mapping[str, Any]) -> str:
    """Return how many units are worked on at a time."""
    return "as many as fit" if units["parallelism"] == "auto" else str(units["parallelism"])


def _strategy(prepared: PreparedJob) -> tuple[str, str]:
    """Return the strategy that the job is recovered by, and where that is from."""
    spec, code = prepared.spec, prepared.code
    strategy = str(recovery_strategy(spec, code.strategy))
    named = code.facts.named
    where = f"{named.name} ({named.place})" if named is not None else ""
    if spec.strategy is not Strategy.AUTO:
        other = f"; the code names {where}" if code.facts.strategy not in ("", strategy) else ""
        return strategy, f"service.strategy{other}"
    if rendered_strategy(spec) is Strategy.INDEPENDENT:
        return strategy, "one task trains"
    if code.contract == CONTRACT_FUNCTION:
        return strategy, "the function is given a server"
    if code.strategy:
        return strategy, f"recognised by {where}"
    if not code.facts.code:
        return strategy, "by the roles; the code is not on this machine"
    if len(code.facts.strategies) > 1:
        return strategy, "by the roles; the code names several"
    hidden = f", as far as it can be read ({code.facts.hidden})" if code.facts.hidden else ""
    return strategy, f"by the roles; the code names none{hidden}"


def _newest_checkpoint(spec: ServiceSpec) -> str:
    """Return the checkpoint on this machine that a start would go on from; empty for none."""
    directory = spec.job.checkpoint_dir or spec.job.shared_filesystem
    if spec.storage.checkpoints.uri or not directory or "://" in directory:
        return ""
    found = restorable(directory)
    return os.path.basename(found.path) if found is not None else ""


def _checkpoints(job: Mapping[str, Any]) -> str:
    """Return where checkpoints are, how long, and what is there."""
    if not job["checkpoints"]:
        return _private(job["volume"])
    kept = f"{job['checkpoints']}, kept between runs"
    return f"{kept}; goes on from {job['goes_on_from']}" if job["goes_on_from"] else kept


def _address(role: Mapping[str, Any]) -> str:
    port = f"port {role['port']}" if role["port"] else "a port"
    return f"on {port} of the machine it comes to"


def _interpreters(roles: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the tasks run with, each once, with the roles where it is not all of them."""
    by_text: dict[str, list[str]] = {}
    for role in roles:
        by_text.setdefault(_interpreter(role), []).append(role["role"])
    if len(by_text) == 1:
        return list(by_text)
    return [f"{', '.join(names)}: {text}" for text, names in by_text.items()]


def _interpreter(role: Mapping[str, Any]) -> str:
    version = f", TensorFlow {role['tensorflow']}" if role["tensorflow"] else ""
    if role["image"]:
        return f"image {role['image']}{version}"
    python = f"python {role['python']}" if role["python"] else "python3 of its agent"
    return f"{python}{version}"


def _private(volume: str) -> str:
    """Return where checkpoints are that no other task sees."""
    if volume:
        return f"in each task's persistent volume, {volume}"
    return "in each task's sandbox, and lost with it"


def _contract(contract: str, in_cluster: bool) -> str:
    told = " with TF_CONFIG" if in_cluster else ""
    return {
        "auto": "found out when the code is there",
        "function": "function: main(server, log_dir, context) is called",
        "script": f"script: the module is run{told}",
        "command": f"command: the command line is run{told}",
    }.get(contract, contract)


def _members(spec: ServiceSpec) -> dict[str, list[str]]:
    """Return the jobs of the ClusterSpec and which task is which member of them."""
    names = ClusterSpec(0, {name: name for name in spec.task_names()})
    found: dict[str, list[str]] = {}
    for name in spec.task_names():
        config = render_tf_config(spec, names, name)
        if config is not None:
            found = {kind: list(members) for kind, members in config["cluster"].items()}
            break
    if not found and spec.job.contract == "function":
        for name in spec.task_names():
            server = server_definition(spec, names, name)
            if server is not None:
                return {kind: list(members) for kind, members in server["cluster"].items()}
    return found


def _role(role: RoleSpec, tensorflow: str) -> dict[str, Any]:
    return {
        "role": str(role.role),
        "count": role.count,
        "port": role.port,
        "tensorflow": tensorflow,
        "resources": asdict(role.resources),
        "python": role.python,
        "image": role.container.image if role.container is not None else "",
        "placement": [
            ":".join(filter(None, (c.field, c.operator, c.value))) for c in role.constraints
        ],
    }


def _needs(role: Mapping[str, Any]) -> str:
    each = " each" if role["count"] > 1 else ""
    parts = [f"{amounts(**role['resources'])}{each}"]
    if role["placement"]:
        parts.append(f"placement {', '.join(role['placement'])}")
    return ", ".join(parts)
