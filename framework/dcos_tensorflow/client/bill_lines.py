"""A bill as lines for a person, of the document that ``capacity.billing.bill`` makes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dcos_tensorflow.client.wording import columns, duration

_HEAD = ("", "machines", "time", "idle", "lost", "paid", "on demand", "saved")


def bill_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table with a line for each type and market, and one sentence of what was saved."""
    if not told["lines"]:
        yield "No machine was bought."
        return
    rows: list[tuple[str, ...]] = [_HEAD]
    rows += [_cells(f"{line['instance_type']} {line['market']}", line) for line in told["lines"]]
    total = told["total"]
    if len(told["lines"]) > 1:
        rows.append(_cells("all", total))
    yield from columns(rows)
    yield savings(total)


def savings(total: Mapping[str, Any]) -> str:
    """Return what was paid and saved in one sentence, of the total of a bill."""
    paid, on_demand = float(total["paid"]), float(total["on_demand"])
    if not on_demand:
        return f"The machines have cost {total['paid']}."
    percent = abs(1 - paid / on_demand)
    than = "less" if paid <= on_demand else "more"
    return (
        f"The machines have cost {total['paid']}, {percent:.0%} {than} than the"
        f" {total['on_demand']} of on-demand ones."
    )


def _cells(name: str, told: Mapping[str, Any]) -> tuple[str, ...]:
    times = (duration(told[key]) for key in ("seconds", "idle_seconds", "lost_seconds"))
    money = (told[key] for key in ("paid", "on_demand", "saved"))
    return (name, str(told["machines"]), *times, *money)
