"""``batch``: how far a batch is, and what has failed of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.cli.output import say_lines, show_json
from dcos_tensorflow.cli.services.asked import Asked
from dcos_tensorflow.cli.services.units import told_units
from dcos_tensorflow.cli.wording import duration, unit_failure
from dcos_tensorflow.core.counted import counted

_MOST_FAILURES = 20


@click.command()
@asks_about()
def batch(asked: Asked) -> int:
    """Show the progress of a batch and its failed shards."""
    if asked.as_json:
        show_json(told_units(asked, "shard"))
    else:
        # Of ten thousand shards those are asked for that are told one by one.
        say_lines(lines(told_units(asked, "shard", "failed")))
    return 0


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a batch stands, for a person."""
    counts, total = document["counts"], document["total"]
    done = counts.get("succeeded", 0)
    share = f" ({100 * done // total} %)" if total else ""
    yield f"{counted(total, 'shard')}: {done} done{share}{_others(counts)}."
    left = total - done - counts.get("failed", 0)
    seconds = estimate(document)
    if seconds is not None:
        yield f"About {duration(seconds)} to go for {counted(left, 'shard')}."
    failure = unit_failure(document)
    if failure and left:
        yield f"The newest failure: {failure}"
    failed = [unit for unit in document["units"] if unit["state"] == "failed"]
    for unit in failed[:_MOST_FAILURES]:
        yield f"  shard {unit['index']} [{unit['begin']}:{unit['end']}] failed: {unit['why']}"
    if len(failed) > _MOST_FAILURES:
        yield f"  ... and {len(failed) - _MOST_FAILURES} more: --json lists them."


def estimate(document: Mapping[str, Any]) -> float | None:
    """Return the seconds that are left at the pace of the newest shards; None where none ran."""
    counts, usual = document["counts"], document.get("usual_seconds") or 0.0
    decided = sum(counts.get(state, 0) for state in ("succeeded", "failed", "pruned"))
    left, running = document["total"] - decided, counts.get("running", 0)
    return left * float(usual) / running if left and running and usual else None


def _others(counts: Mapping[str, int]) -> str:
    told = ((counts.get(state, 0), state) for state in ("running", "waiting", "failed"))
    return "".join(f", {count} {state}" for count, state in told if count)
