"""Numbers and times as people read them. Pure; used by every view of the command line."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.core.counted import counted

if TYPE_CHECKING:
    from dcos_tensorflow.client.snapshot import TaskLine

_DAY = 86_400
#: What is said of a unit's state, where that is another word.
UNIT_WORDS = {"pruned": "stopped early"}


def numbers(task: TaskLine) -> str:
    """Return what is known of a task's training, e.g. ``step 300, loss 0.21, accuracy 0.94``."""
    parts = []
    if task.epoch is not None:
        of = f"/{task.epochs}" if task.epochs is not None else ""
        parts.append(f"epoch {task.epoch}{of}")
    if task.step is not None:
        parts.append(f"step {task.step}")
    if task.loss is not None:
        parts.append(f"loss {short(task.loss)}")
    if task.accuracy is not None:
        parts.append(f"accuracy {short(task.accuracy)}")
    return ", ".join([*parts, *metrics(task)])


def metrics(task: TaskLine) -> list[str]:
    """Return what else a task tells by name, e.g. ``val_auc 0.8``."""
    return [f"{name} {short(value)}" for name, value in task.metrics.items()]


def short(value: float) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}"


def duration(seconds: float) -> str:
    """Return a time span, e.g. ``34 s``, ``5 min 12 s``, ``3 h 4 min``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def clock(at: float | None) -> str:
    """Return a time of unix seconds as the clock of this machine has it; empty for none."""
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def moment(at: float | None, now: float | None = None) -> str:
    """Return how long ago a time of unix seconds was, from a day on when; empty for none.

    The dashboard tells it so, too (``time.js``).
    """
    if at is None:
        return ""
    away = (time.time() if now is None else now) - at
    if not 0 <= away < _DAY:
        return clock(at)
    if round(away) < 1:
        return "now"
    hours, minutes = divmod(int(away) // 60, 60)
    parts = [(hours, "h"), (minutes, "min"), (0 if hours or minutes else round(away), "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) + " ago"


def megabytes(value: float) -> str:
    """Return an amount of memory or disk, e.g. ``512 MB``, ``1.5 GB``."""
    return f"{value / 1024:.3g} GB" if value >= 1024 else f"{value:.0f} MB"


def size(value: float) -> str:
    """Return bytes as a person reads them."""
    if value < 1024:
        return f"{value:.0f} bytes"
    return megabytes(value / 2**20) if value >= 2**20 else f"{value / 1024:.3g} KB"


def amounts(cpus: float, mem: float, disk: float, gpus: float) -> str:
    """Return what a task needs or a machine has, e.g. ``2 cpus, 4 GB memory, 10 GB disk``."""
    text = f"{counted(float(cpus), 'cpu')}, {megabytes(mem)} memory, {megabytes(disk)} disk"
    return f"{text}, {counted(float(gpus), 'gpu')}" if gpus else text


def words(name: str) -> str:
    """Return the name of a result as words: ``test_accuracy`` becomes ``test accuracy``."""
    return name.replace("_", " ").strip()


def value_text(value: Any) -> str:
    """Return the value of a result in one line."""
    if isinstance(value, float):
        return short(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{words(str(k))} {value_text(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(value_text(item) for item in value)
    return str(value)


def table(rows: list[tuple[str, str]], indent: str = "  ") -> list[str]:
    """Return two columns as lines, the first one padded."""
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{indent}{name:<{width}}  {text}".rstrip() for name, text in rows]


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows of the same length as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()


def without_repeats(text: str, told: Iterable[str]) -> str:
    """Return what of a sentence is new to a reader who has been told the others already."""
    for known in sorted(filter(None, told), key=len, reverse=True):
        text = text.replace(known, "")
    return re.sub(r"^[\s;:,]+|[\s;:,]+$", "", text).replace(": ;", ";").replace("()", "")


def units_done(told: Mapping[str, Any]) -> str:
    """Return how far the units of a sweep or batch are, of what the API counts."""
    found = {state: count for state, count in told["counts"].items() if count}
    done = found.pop("succeeded", 0)
    of = f" of {told['total']}" if told["total"] else ""
    found.pop("waiting", None)
    rest = "".join(f", {count} {UNIT_WORDS.get(state, state)}" for state, count in found.items())
    return f"{done}{of} {told['kind']}s done{rest}"


def unit_failure(told: Mapping[str, Any]) -> str:
    """Return the newest failure of a unit, which may be tried again; empty for none."""
    failure = told.get("failure")
    return f"{told['kind']} {failure['number']}: {failure['why']}" if failure else ""


def detailed(doing: str, detail: str) -> str:
    """Return what a task does with where, or with why."""
    if not detail or detail.startswith(("on ", "at ", "for ")):
        return f"{doing} {detail}".rstrip()
    return f"{doing}: {detail}"


def sentence(text: str) -> str:
    """Return a message as a sentence; an option's path that it begins with stays as it is."""
    text = text.strip()
    option = re.match(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+:", text)
    first = text[:1] if option else text[:1].upper()
    return f"{first}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
