"""Run every benchmark, and put what they have found into one flat JSON file.

Called by ``make bench``; at most 20 minutes on two cores. Each script runs by itself and writes its
figures with ``--json``, of which the plain numbers count; here it gets the arguments that keep it
short, and with ``--full`` none of them. The measured recovery (``benchmarks/recovery``) is not
among the scripts: it takes 48 minutes.

    python -m benchmarks.bench [--only NAME ...] [--full] [--json build/bench.json]

With ``--only`` the other figures in the file stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Module -> its arguments, the quick ones first.
SCRIPTS: dict[str, tuple[str, ...]] = {
    "jobs.runner_memory": (),
    "jobs.log_lines": ("--lines", "200000"),
    "jobs.sweep_methods": (),
    "machines.purchase_plan": (),
    "spot_market": ("--starts", "2"),
    "step": (),
    "scheduler.commits": (),
    "api": (),
    "scheduler.offers": ("--rounds", "3"),
    "scheduler.restart": (),
    "scheduler.idle": (),
    "scheduler.held_up": ("--seconds", "15"),
    "jobs.batch": ("--shards", "1000"),
    "scheduler.state_store": (),
    "placement": (),
    "jobs.checkpoint_sync": ("--megabytes", "500", "--files", "10", "--rounds", "1"),
    "jobs.planned_restart": ("--rounds", "1", "--strategy", "parameter_server"),
    "start": (
        *("--pairs", "2", "--strategy", "parameter_server", "--tensorflow", "2.21.0"),
        *("--whole-pairs", "0"),
    ),
    "jobs.data_service": ("--seconds", "8"),
    "jobs.training_speed": ("--rounds", "3", "--seconds", "20", "--save-seconds", "6"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=sorted(SCRIPTS), metavar="NAME")
    parser.add_argument("--full", action="store_true", help="take the time that it needs")
    parser.add_argument("--json", type=Path, default=ROOT / "build/bench.json")
    arguments = parser.parse_args()
    began, failed = time.monotonic(), []
    found: dict[str, float] = {}
    if arguments.only and arguments.json.exists():
        found = json.loads(arguments.json.read_text())
    for name in arguments.only or SCRIPTS:
        figures = arguments.json.parent / "bench" / f"{name}.json"
        figures.parent.mkdir(parents=True, exist_ok=True)
        figures.unlink(missing_ok=True)
        print(f"== {name}", flush=True)
        if run(name, figures, () if arguments.full else SCRIPTS[name]):
            told = json.loads(figures.read_text())
            found |= {key: each for key, each in told.items() if isinstance(each, int | float)}
        else:
            failed.append(name)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    print(
        f"{arguments.json}: {len(found)} figures in {(time.monotonic() - began) / 60:.1f} minutes"
    )
    for name in failed:
        print(f"benchmarks.{name} failed: its figures are missing", file=sys.stderr)
    return 1 if failed else 0


def run(name: str, figures: Path, short: tuple[str, ...]) -> bool:
    """Run one script with these arguments; say whether it has written its figures."""
    began = time.monotonic()
    own = (str(ROOT), str(ROOT / "framework"), os.environ.get("PYTHONPATH", ""))
    paths = os.pathsep.join(filter(None, own))
    command = [sys.executable, "-m", f"benchmarks.{name}", *short, "--json", str(figures)]
    ended = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": paths})
    print(f"   {time.monotonic() - began:.0f} s", flush=True)
    return ended.returncode == 0 and figures.exists()


if __name__ == "__main__":
    sys.exit(main())
