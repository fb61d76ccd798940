"""Render every legal mix of roles under every strategy into the golden files beside this script.

    python tests/unit/core/golden/tf_config/generate.py           writes them
    python tests/unit/core/golden/tf_config/generate.py --check   fails when one differs

One file per strategy; in it, per mix, what every task is told. The files are read by
``tests/unit/core/cluster/test_cluster_spec.py`` and, with TensorFlow itself, by
``tests/end_to_end/test_tf_config_resolver.py``.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dcos_tensorflow.core.cluster.rendering import (
    address_of,
    illegal_mix,
    rendered_strategy,
    runner_cluster,
)
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, ServiceSpec, Strategy, TaskRole

HERE = Path(__file__).resolve().parent
PORTS = {
    TaskRole.CHIEF: 2221,
    TaskRole.WORKER: 2222,
    TaskRole.PS: 2223,
    TaskRole.GPU_WORKER: 2224,
    TaskRole.EVALUATOR: 2225,
    TaskRole.TENSORBOARD: 6006,
}
COUNTS = {
    TaskRole.PS: (0, 1, 2),
    TaskRole.CHIEF: (0, 1),
    TaskRole.WORKER: (0, 1, 2),
    TaskRole.GPU_WORKER: (0, 2),
    TaskRole.EVALUATOR: (0, 1),
}


def mixes() -> Iterator[dict[TaskRole, int]]:
    for counts in itertools.product(*COUNTS.values()):
        yield dict(zip(COUNTS, counts, strict=True))


def spec_of(mix: dict[TaskRole, int], strategy: Strategy) -> ServiceSpec:
    roles = [RoleSpec(role, count, Resources(cpus=1, mem=1024)) for role, count in mix.items()]
    # TensorBoard is in every mix, so that each golden file shows that no sidecar is listed.
    roles.append(RoleSpec(TaskRole.TENSORBOARD, 1, Resources(cpus=0.5, mem=512)))
    return ServiceSpec(name="golden", roles=tuple(roles), strategy=strategy)


def cluster_of(spec: ServiceSpec) -> ClusterSpec:
    """Give every task an address: 10.0.<role>.<index + 1>, and the role's port."""
    addresses = {}
    for number, role_spec in enumerate(spec.roles):
        for index in range(role_spec.count):
            addresses[f"{role_spec.role}-{index}"] = address_of(
                spec, role_spec, index, f"10.0.{number}.{index + 1}", PORTS[role_spec.role]
            )
    return ClusterSpec(epoch=1, addresses=addresses)


def mix_name(mix: dict[TaskRole, int]) -> str:
    return ", ".join(f"{count} {role}" for role, count in mix.items() if count)


def rendered(mix: dict[TaskRole, int], strategy: Strategy) -> dict[str, Any]:
    spec = spec_of(mix, strategy)
    cluster = cluster_of(spec)
    return {
        "strategy": str(rendered_strategy(spec)),
        "decider": spec.decider,
        "tasks": {task: runner_cluster(spec, cluster, task) for task in spec.task_names()},
    }


def golden(strategy: Strategy) -> str:
    """Return the file of ``strategy``: JSON, one line per task."""
    blocks = []
    for mix in mixes():
        if illegal_mix(spec_of(mix, strategy)) is not None:
            continue
        entry = rendered(mix, strategy)
        tasks = ",\n".join(
            f"      {json.dumps(task)}: {json.dumps(told)}" for task, told in entry["tasks"].items()
        )
        blocks.append(
            f"  {json.dumps(mix_name(mix))}: {{\n"
            f'    "strategy": {json.dumps(entry["strategy"])},\n'
            f'    "decider": {json.dumps(entry["decider"])},\n'
            f'    "tasks": {{\n{tasks}\n    }}\n  }}'
        )
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def path_of(strategy: Strategy) -> Path:
    return HERE / f"{strategy}.json"


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    different = []
    for strategy in Strategy:
        text = golden(strategy)
        if not arguments:
            path_of(strategy).write_text(text)
        elif not path_of(strategy).exists() or path_of(strategy).read_text() != text:
            different.append(path_of(strategy).name)
    for name in different:
        print(f"{name} differs from what the code renders; run {Path(__file__).name} and look")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
