"""The replay of a cluster's jobs through the queue, on a made trace."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def write_traces(folder: Path) -> None:
    rng = random.Random(1)
    nodes = [f"node-{k},32000,65536,{gpus},V100" for k, gpus in enumerate((8, 4, 4, 2, 2, 0))]
    pods = []
    for k in range(400):
        came = 60 * k
        gpus = rng.choice((0, 1, 1, 1, 1, 2, 8))
        row = (f"pod-{k}", 2_000, 4_096, gpus, 1_000 if gpus else 0, "", "LS", "Running")
        pods.append(",".join(map(str, (*row, came, came + rng.randint(60, 3_000), came))))
    (folder / "nodes.csv").write_text("\n".join(("sn,cpu_milli,memory_mib,gpu,model", *nodes)))
    columns = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
        "creation_time,deletion_time,scheduled_time"
    )
    (folder / "pods.csv").write_text("\n".join((columns, *pods)))


def test_each_policy_is_replayed_to_the_end_of_all_jobs(tmp_path: Path) -> None:
    write_traces(tmp_path)
    figures = tmp_path / "figures.json"
    command = [sys.executable, BENCHMARKS / "queue.py", "--traces", tmp_path, "--json", figures]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    summary = json.loads(figures.read_text())["summary"]
    assert set(summary) == {"fifo", "backfill", "drf", "ours"}
    assert {"wait_mean", "wait_p95", "slowdown_p95", "utilisation", "fairness"} <= set(
        summary["ours"]
    )
    assert summary["ours"]["fairness"] >= summary["fifo"]["fairness"]
