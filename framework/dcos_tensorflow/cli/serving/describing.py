"""What a service is going to run, as a document and as text. Used by ``validate``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.cli.embedded.fitting import wanted
from dcos_tensorflow.cli.serving.preparation import PreparedJob
from dcos_tensorflow.cli.wording import amounts, table
from dcos_tensorflow.core.cluster.cluster_spec import rendered_strategy, server_definition
from dcos_tensorflow.core.cluster.cluster_spec import tf_config as render_tf_config
from dcos_tensorflow.core.cluster.storage_sections import checkpoints_place
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.resources import Resources
from dcos_tensorflow.core.model.spec import RoleSpec, ServiceSpec
from dcos_tensorflow.core.recovery import outcome


def document(prepared: PreparedJob, *, local: bool) -> dict[str, Any]:
    """Return what would run, as JSON; ``local`` is on the embedded cluster."""
    spec = prepared.spec
    return {
        "service": spec.name,
        "local": local,
        "contract": prepared.contract,
        "strategy": str(rendered_strategy(spec)),
        "outcome": str(spec.outcome),
        "deciding_tasks": list(outcome.deciding_tasks(spec)),
        "job": {
            "url": spec.job.uri,
            "name": spec.job.name,
            "command": spec.job.command,
            "checkpoint_dir": spec.job.checkpoint_dir,
            "shared_filesystem": spec.job.shared_filesystem,
            "checkpoints": checkpoints_place(spec),
            "volume": next((r.volume.path for r in spec.roles if r.volume is not None), ""),
        },
        "roles": [_role(role) for role in spec.roles],
        "tasks": list(spec.task_names()),
        "total": _resources(wanted(spec)),
        "cluster_spec": _members(spec),
        "notes": list(prepared.notes),
    }


def lines(described: Mapping[str, Any]) -> list[str]:
    """Return the document as text for a person."""
    job = described["job"]
    code = job["name"] or job["command"]
    where = "on this machine" if described["local"] else "on Mesos"
    found = [
        f"{described['service']} would run {counted(len(described['tasks']), 'task')} {where}:"
    ]
    found += table([(_title(role), _needs(role)) for role in described["roles"]])
    found.append("")
    total = amounts(**described["total"])
    members = "; ".join(
        f"{kind}: {', '.join(names)}" for kind, names in described["cluster_spec"].items()
    )
    found += table(
        [
            ("together", total),
            ("job", f"{code} from {job['url']}" if job["url"] else code),
            ("contract", _contract(described["contract"])),
            ("strategy", described["strategy"]),
            ("ClusterSpec", members or "none: each task trains by itself"),
            ("outcome", f"decided by {', '.join(described['deciding_tasks'])}"),
            ("checkpoints", job["checkpoints"] or _private(job["volume"])),
        ],
        indent="",
    )
    return found + [f"note: {note}" for note in described["notes"]]


def _private(volume: str) -> str:
    """Return where checkpoints are that no other task sees."""
    if volume:
        return f"in each task's persistent volume, {volume}"
    return "in each task's sandbox, and lost with it"


def _contract(contract: str) -> str:
    return {
        "auto": "found out when the code is there",
        "function": "function: main(server, log_dir, context) is called",
        "script": "script: the module is run with TF_CONFIG",
        "command": "command: the command line is run with TF_CONFIG",
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


def _role(role: RoleSpec) -> dict[str, Any]:
    return {
        "role": str(role.role),
        "count": role.count,
        "resources": _resources(role.resources),
        "python": role.python,
        "image": role.container.image if role.container is not None else "",
        "placement": [
            ":".join(filter(None, (c.field, c.operator, c.value))) for c in role.constraints
        ],
    }


def _resources(resources: Resources) -> dict[str, float]:
    return {
        "cpus": resources.cpus,
        "mem": resources.mem,
        "disk": resources.disk,
        "gpus": resources.gpus,
    }


def _title(role: Mapping[str, Any]) -> str:
    return f"{role['count']} {role['role']}"


def _needs(role: Mapping[str, Any]) -> str:
    each = " each" if role["count"] > 1 else ""
    parts = [f"{amounts(**role['resources'])}{each}"]
    if role["placement"]:
        parts.append(f"placement {', '.join(role['placement'])}")
    if role["image"]:
        parts.append(f"image {role['image']}")
    else:
        parts.append(f"python {role['python'] or 'python3 of its agent'}")
    return ", ".join(parts)
