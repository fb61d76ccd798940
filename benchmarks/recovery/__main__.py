"""The program: choose the cases, measure them, write the table."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.recovery import network, processes, table
from benchmarks.recovery.cases import CASES, TRAININGS, Case
from benchmarks.recovery.measuring import Measurement, Result

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "recovery.md"
VERSIONS = ("2.15.1", "2.21.0")


def main(arguments: Sequence[str]) -> int:
    """Measure; return 0 when everything was as it should be."""
    options = _options(arguments)
    network.enter(arguments)
    processes.end_in_order()
    if network.available():
        network.prepare()
    cases = [case for case in CASES if _chosen(case, options.only)]
    if not cases:
        print(f"no case fits {' '.join(options.only)}", file=sys.stderr)
        return 2
    began = time.monotonic()
    results: list[Result] = []
    folder = Path(tempfile.mkdtemp(prefix="recovery-", dir=options.work_dir))
    for version in options.tensorflow:
        for strategy, training in TRAININGS.items():
            own = tuple(case for case in cases if case.strategy == strategy)
            if not own:
                continue

            def say(text: str, about: str = f"{strategy}, TensorFlow {version}") -> None:
                print(f"{time.monotonic() - began:6.1f} s  {about}: {text}", flush=True)

            place = folder / version / strategy
            place.mkdir(parents=True)
            python = options.environments / f"tensorflow-{version}" / "bin" / "python"
            measurement = Measurement(training, own, version, python, place, say, options.repeat)
            results += measurement.run()
            # After each part: a user who stops the program keeps what was measured.
            if options.json:
                options.json.write_text(table.document(results))
            if options.write:
                table.write_into(PAGE, table.markdown(results))
    print(table.markdown(results))
    wrong = [result for result in results if not result.as_it_should_be]
    for result in wrong:
        case = result.case
        print(
            f"not as it should be: {case.strategy}, {case.victim}, {case.way}, {result.tensorflow}"
        )
    if wrong or options.keep:
        print(f"what the tasks and schedulers wrote is in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if wrong else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME=VALUE,...",
        help="strategy=, victim=, way=; all that are given must fit; again for more cases",
    )
    parser.add_argument("--tensorflow", nargs="+", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--environments", type=Path, default=ROOT / ".venvs")
    parser.add_argument(
        "--repeat",
        type=int,
        default=1,
        help="play each process death so often, by hand and as a service; the table shows medians",
    )
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    parser.add_argument("--work-dir", type=Path, help="where sandboxes and logs are made")
    parser.add_argument("--keep", action="store_true", help="leave sandboxes and logs")
    return parser.parse_args(arguments)


def _chosen(case: Case, only: Sequence[str]) -> bool:
    known = {"strategy": case.strategy, "victim": case.victim, "way": str(case.way)}
    return not only or any(
        all(
            known.get(name) == value
            for name, _, value in (part.partition("=") for part in one.split(","))
        )
        for one in only
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
