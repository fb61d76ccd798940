"""``python -m tests.fuzz [DOOR ...] [--seconds N] [--seed N] [--corpus DIR] [--input FILE]``.

Tries each door for so long and says how many inputs, how long, and what crashed; ends with 1 where
something did. With ``--corpus`` atheris tries one door, and needs to be installed.
"""

import argparse
import contextlib
import logging
import sys
import time
from pathlib import Path

_TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "framework")]


def _measured(wanted: bool) -> contextlib.AbstractContextManager[object]:
    """Have atheris measure what of ours is imported meanwhile."""
    if not wanted:
        return contextlib.nullcontext()
    import atheris

    return atheris.instrument_imports(include=["dcos_tensorflow"])


def main() -> int:
    """Return the exit code."""
    with _measured("--corpus" in sys.argv):
        from fuzz import engine
        from fuzz.doors import DOORS

    logging.disable()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("doors", nargs="*", metavar="DOOR", help=", ".join(DOORS))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    parser.add_argument("--corpus", type=Path, help="folder of inputs; atheris goes on from them")
    parser.add_argument("--input", type=Path, help="try this one only, and show what it does")
    given = parser.parse_args()
    unknown = set(given.doors) - set(DOORS)
    if unknown:
        parser.error(f"there is no door {', '.join(unknown)}; there are {', '.join(DOORS)}")
    if (given.input or given.corpus) and len(given.doors) != 1:
        parser.error("--input and --corpus are for one door")
    if given.input:
        DOORS[given.doors[0]].enter(given.input.read_bytes())
        return 0
    if given.corpus:
        engine.by_coverage(given.doors[0], given.seconds, given.corpus, given.seed)
    crashed = False
    for name in given.doors or DOORS:
        tried = engine.by_chance(name, given.seconds, given.seed)
        print(
            f"{name}: {tried.inputs} inputs in {tried.seconds:.0f} s (seed {given.seed}),"
            f" {len(tried.crashes)} kinds of crashes",
            flush=True,
        )
        for crash in tried.crashes:
            crashed = True
            print(f"  {crash.what}: {crash.data[:2000]!r}\n{crash.traceback}", flush=True)
    return int(crashed)


if __name__ == "__main__":
    sys.exit(main())
