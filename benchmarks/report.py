"""Write the figures of ``make bench`` into docs/performance.md and docs/pictures.

    python -m benchmarks.report [--json build/bench.json]

The tables stand between ``<!-- figures: NAME -->`` and ``<!-- end -->``; the text around them is
written by hand. A row whose figures were not measured now stays as it is. The pictures are SVG that
can be read on a light and on a dark page.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.jobs import start_stages

DOCS = Path(__file__).resolve().parents[1] / "docs"

Figures = Mapping[str, float]
Points = Sequence[tuple[float, float]]

#: Name -> what it is, its unit, and what must hold, for the first table.
GOALS: dict[str, tuple[str, str, str]] = {
    "step_10000_ms": ("a step with 10,000 tasks, CPU", "ms", "at most 10"),
    "event_10000_ms": ("an event in a batch of 200, 10,000 tasks, CPU", "ms", "at most 0.5"),
    "offers_10000_idle_cpu_seconds": (
        "offers of 10,000 agents to the DECLINE, CPU",
        "s",
        "at most 1",
    ),
    "offers_10000_100_tasks_cpu_seconds": (
        "the same, with 100 of them launched on",
        "s",
        "at most 1",
    ),
    "placement_10000_tasks_per_second": ("tasks placed, 10,000 agents", "/s", "at least 10,000"),
    "placement_10000_fill": ("cpus in use at the end of it", "", "at least 0.99"),
    "placement_packed_2000_fill": (
        "cpus in use of 2,000 agents, tasks of mixed sizes",
        "",
        "at least 0.99",
    ),
    "placement_packed_strict_2000_fill": (
        "the same when the first task of a stream finds no place",
        "",
        "",
    ),
    "updates_committed_per_second": ("updates committed, ZooKeeper", "/s", "at least 2,000"),
    "restart_10000_tasks_seconds": ("a restart with 10,000 tasks", "s", ""),
    "start_ratio": ("first step under us over the same by hand, worst job", "", "at most 1.15"),
    "whole_ratio": ("end of a job of a minute over the same by hand", "", "at most 1.1"),
    "start_stage_own_launch_seconds": ("command to the chief's process", "s", "at most 2"),
    "start_stage_runs_launch_seconds": ("the same on a cluster that runs", "s", "at most 1"),
    "run_true_seconds": ("`run` of a script that does nothing", "s", "at most 2"),
    "validate_seconds": ("`validate`", "s", "at most 0.4"),
    "sleepers_seconds": ("four tasks that sleep, by a scheduler that does nothing else", "s", ""),
    "planned_restart_ratio": ("a planned restart over the chief's by hand", "", "at most 1.3"),
    "sweep_hartmann_tpe_wins": (
        "sweeps of 10 in which tpe is nearer than random",
        "",
        "at least 8",
    ),
    "spot_market_cost_over_greedy": (
        "gangs with a deadline on made-up spot markets: cost over a greedy policy's",
        "",
        "less than 0.9",
    ),
    "spot_market_missed": ("deadlines missed there", "", "0"),
    "batch_command_10000_slots_ratio": (
        "10,000 shards of 0.1 s: as fast as xargs with the same",
        "",
        "at least 0.7",
    ),
    "batch_function_10000_slots_ratio": (
        "10,000 calls of a function: as fast as xargs with a Python for each",
        "",
        "more than 1",
    ),
    "training_ratio": ("training under us over the same by hand", "", "at least 0.98"),
    "training_publishing_ratio": ("training with over without publishing to S3", "", ""),
    "runner_memory_mb": ("memory of a task runner", "MB", ""),
    "runner_lines_per_second": (
        "lines with numbers a second that a job prints through its runner",
        "",
        "at least 100000",
    ),
    "idle_scheduler_memory_mb": ("memory of an idle scheduler", "MB", ""),
}
#: CPU of a Tick before a step cost what had changed (0.1.0, on the same kind of machine).
SQUARE: Points = ((100, 4.5), (300, 34.0), (1_000, 417.0), (3_000, 3_500.0))
KINDS = ("tick", "report", "update", "reports_200", "updates_200")

#: Figures with one of these beginnings are in tables and pictures of their own.
_ELSEWHERE = (
    "step_",
    "event_",
    "batch_",
    "start_",
    "end_ratio_",
    "cpu_per_task_",
    "memory_per_task_",
)

#: Who works on a batch.
_WAYS = ("slots", "xargs", "parallel")
# Colours that stand out from white and from black alike.
_COLOURS = ("#2f7ed8", "#d9730d", "#2e9e5b", "#c2418f", "#8a63d2", "#888888")
_WIDTH, _HEIGHT = 640, 380
_LEFT, _TOP, _RIGHT, _BOTTOM = 70, 40, 150, 50
# Bars: how high one is, how far apart they are, and how much room their names have.
_BAR, _BARS_APART, _NAMES = 34, 48, 130


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, default=DOCS.parent / "build/bench.json")
    figures: Figures = json.loads(parser.parse_args().json.read_text())
    page = DOCS / "performance.md"
    text = page.read_text()
    for name, table in TABLES.items():
        before, begin, rest = text.partition(f"<!-- figures: {name} -->\n")
        there, end, after = rest.partition("<!-- end -->")
        rows = merged(there.splitlines(), table(figures), KEYS.get(name, 1))
        text = "".join((before, begin, *(f"{row}\n" for row in rows), end, after))
    page.write_text(text)
    (DOCS / "pictures").mkdir(exist_ok=True)
    for name, picture in PICTURES.items():
        drawn = picture(figures)
        if drawn:
            (DOCS / "pictures" / f"{name}.svg").write_text(drawn)


# Tables.


def merged(there: Iterable[str], now: Iterable[str], keys: int) -> list[str]:
    """Return a table's rows: those of now, and those there of what was not measured now.

    The first ``keys`` cells of a row say what it is of.
    """

    def key(row: str) -> tuple[str, ...]:
        return tuple(cell.strip() for cell in row.split("|")[1 : 1 + keys])

    new = {key(row): row for row in now}
    return [*(new.pop(key(row), row) for row in there), *new.values()]


def goals(figures: Figures) -> Iterator[str]:
    """Yield the table of what must hold."""
    yield "| figure | what | measured | goal |"
    yield "|---|---|---|---|"
    for name, (what, unit, goal) in GOALS.items():
        if name in figures:
            yield f"| `{name}` | {what} | {shown(figures[name])} {unit} | {goal} |".replace(
                "  ", " "
            )


def steps(figures: Figures) -> Iterator[str]:
    """Yield the CPU of a step by the number of tasks."""
    yield "| tasks | tick | report | update | 200 reports | 200 updates |"
    yield "|---|---|---|---|---|---|"
    for tasks in sizes(figures, r"step_(\d+)_ms"):
        cells = (figures.get(f"step_{tasks}_{kind}_ms") for kind in KINDS)
        row = " | ".join("" if cell is None else f"{shown(cell)} ms" for cell in cells)
        yield f"| {tasks:,} | {row} |"


def starts(figures: Figures) -> Iterator[str]:
    """Yield how soon each job trains and is over, over the same by hand."""
    yield "| strategy | TensorFlow | first step | on a cluster that runs | end | on one that runs |"
    yield "|---|---|---|---|---|---|"
    for name in figures:
        if job := re.fullmatch(r"start_ratio_(\w+)_([\d.]+)_own", name):
            strategy, version = job.groups()
            names = (f"{one}_ratio_{strategy}_{version}" for one in ("start", "end"))
            keys = (f"{one}_{kind}" for one in names for kind in ("own", "runs"))
            row = " | ".join(shown(figures[key]) for key in keys)
            yield f"| `{strategy}` | {version} | {row} |"


def costs(figures: Figures) -> Iterator[str]:
    """Yield what the processes of one task have cost until the first step, and what there is once.

    The figures are those of a parameter_server job of four tasks.
    """
    yield "| process | CPU | memory |"
    yield "|---|---|---|"
    kinds = {"executor": "executor_", "runner": "runner_", "guard": "guard_", "all of one task": ""}
    for name, kind in kinds.items():
        if (key := f"cpu_per_task_{kind}seconds") in figures:
            memory = figures[f"memory_per_task_{kind}mb"]
            yield f"| {name} | {shown(figures[key])} s | {shown(memory)} MB |"
    rest = {
        "command": "the command, and the scheduler in it",
        "cluster": "the embedded cluster",
        "user": "the four of the user, together",
        "by_hand": "the four of the user by hand",
    }
    for kind, name in rest.items():
        if (key := f"start_cpu_{kind}_seconds") in figures:
            yield f"| {name} | {shown(figures[key])} s | |"


def batches(figures: Figures) -> Iterator[str]:
    """Yield how fast batches of tiny shards are, beside others with the same processes."""
    yield "| shards | of | slots | xargs | parallel | over xargs | CPU | scheduler's | its memory |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for kind in ("command", "function"):
        for shards in sizes(figures, rf"batch_{kind}_(\d+)_slots_ratio"):
            known = {
                name: shown(figures[key])
                for name in _WAYS
                if (key := f"batch_{kind}_{shards}_{name}_per_second") in figures
            }
            rates = " | ".join(f"{known[n]} /s" if n in known else "" for n in _WAYS)
            ours = f"batch_{kind}_{shards}_slots"
            cost = (f"{shown(figures[f'{ours}_{name}_ms'])} ms" for name in ("cpu", "scheduler"))
            row = (rates, shown(figures[f"{ours}_ratio"]), *cost)
            memory = f"{shown(figures[f'{ours}_scheduler_mb'])} MB"
            yield f"| {shards:,} | {kind} | {' | '.join(row)} | {memory} |"


def others(figures: Figures) -> Iterator[str]:
    """Yield every figure that no other table has."""
    yield "| figure | value |"
    yield "|---|---|"
    for name, value in sorted(figures.items()):
        if name not in GOALS and not name.startswith(_ELSEWHERE):
            yield f"| `{name}` | {shown(value)} |"


TABLES: dict[str, Callable[[Figures], Iterator[str]]] = {
    "goals": goals,
    "steps": steps,
    "starts": starts,
    "costs": costs,
    "batches": batches,
    "others": others,
}


#: By how many of its first cells a row of a table is known, where that is not one.
KEYS = {"starts": 2, "batches": 2}


def shown(value: float) -> str:
    """Return a number with the digits that mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def sizes(figures: Figures, pattern: str) -> list[int]:
    """Return the numbers in names of this form, the smallest first."""
    found = (re.fullmatch(pattern, name) for name in figures)
    return sorted(int(match[1]) for match in found if match)


# Pictures.


def growth_of_a_step(figures: Figures) -> str:
    """Draw the CPU of a step over the number of tasks."""
    series: dict[str, Points] = {
        kind.replace("_", " "): [
            (tasks, figures[key])
            for tasks in sizes(figures, r"step_(\d+)_ms")
            if (key := f"step_{tasks}_{kind}_ms") in figures
        ]
        for kind in KINDS
    }
    if not any(series.values()):
        return ""
    series["tick in 0.1.0"] = SQUARE
    return chart("CPU of one step, gang running", "tasks", "ms", series)


def growth_of_placement(figures: Figures) -> str:
    """Draw the tasks placed a second over the number of agents."""
    pattern = r"placement_(\d+)_tasks_per_second"
    placed = [(n, figures[f"placement_{n}_tasks_per_second"]) for n in sizes(figures, pattern)]
    return chart("Tasks placed in a second, batches of 200", "agents", "tasks/s", {"place": placed})


def stages_of_a_start(figures: Figures) -> str:
    """Draw where the seconds of a short job go, by hand and under us."""
    ways = {"hand": "by hand", "own": "its own cluster", "runs": "cluster that runs"}
    rows = {
        name: {
            label: max(0.0, figures[key])
            for stage, label in start_stages.NAMES.items()
            if (key := f"start_stage_{way}_{stage}_seconds") in figures
        }
        for way, name in ways.items()
    }
    return bars("From the command to its end: four processes, 100 steps", "seconds", rows)


def nearness_of_a_sweep(figures: Figures) -> str:
    """Draw how far the best trial is from the best that there is, over the number of trials."""
    series = {}
    for space in ("hartmann", "training"):
        for method in ("tpe", "random"):
            name = f"sweep_{space}_{method}_regret_"
            trials = sizes(figures, rf"{name}(\d+)")
            series[f"{method}, {space}"] = [(n, figures[f"{name}{n}"]) for n in trials]
    return chart("Distance from the best, mean of 10 sweeps", "trials", "less is better", series)


PICTURES: dict[str, Callable[[Figures], str]] = {
    "step": growth_of_a_step,
    "placement": growth_of_placement,
    "start": stages_of_a_start,
    "sweep": nearness_of_a_sweep,
}


def bars(title: str, across: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    """Return a bar of parts, one after the other, for each row as SVG; empty without any."""
    longest = max((sum(parts.values()) for parts in rows.values()), default=0.0)
    if not longest:
        return ""
    apart = next(each for each in (1, 2, 5, 10, 20, 50, 100, 1000) if longest <= 8 * each)
    shown_until = math.ceil(longest / apart) * apart
    width, bottom = _WIDTH - _NAMES - 30, _TOP + len(rows) * _BARS_APART

    def place(seconds: float) -> float:
        return _NAMES + seconds / shown_until * width

    names = list(dict.fromkeys(part for parts in rows.values() for part in parts))
    height = bottom + 50 + 22 * math.ceil(len(names) / 3)
    drawn = _beginning(title, title, height)
    for value in range(0, shown_until + 1, apart):
        drawn.append(f'<path class="axis" d="M{place(value):.1f} {bottom:.1f}V{_TOP}"/>')
        drawn.append(_text(place(value), bottom + 16, f"{value:,g}", "middle"))
    drawn.append(_text(_NAMES + width / 2, bottom + 34, across, "middle"))
    for number, (row, parts) in enumerate(rows.items()):
        top, begin = _TOP + number * _BARS_APART + (_BARS_APART - _BAR) / 2, 0.0
        drawn.append(_text(_NAMES - 10, top + _BAR / 2 + 5, row, "end"))
        for part, seconds in parts.items():
            box = f'x="{place(begin):.1f}" y="{top:.1f}" height="{_BAR}"'
            size = f'width="{place(seconds) - place(0):.1f}"'
            drawn.append(f'<rect {box} {size} fill="{_COLOURS[names.index(part)]}"/>')
            begin += seconds
        drawn.append(_text(place(begin) + 4, top + _BAR / 2 + 5, f"{begin:.1f}", "start"))
    for number, name in enumerate(names):
        x, y = _NAMES - 60 + number % 3 * 190, bottom + 56 + number // 3 * 22
        drawn.append(
            f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{_COLOURS[number]}"/>'
        )
        drawn.append(_text(x + 18, y, name, "start"))
    return "\n".join([*drawn, "</svg>", ""])


def _beginning(title: str, heading: str, height: int) -> list[str]:
    """Return the first lines of a picture."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
        f' font-family="sans-serif" font-size="13"><title>{title}</title>',
        "<style>text{fill:#333}.axis{stroke:#888;stroke-opacity:.35}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>",
        f'<text x="{_LEFT}" y="22" font-size="15">{heading}</text>',
    ]


def chart(title: str, across: str, up: str, series: Mapping[str, Points]) -> str:
    """Return lines over two logarithmic axes as SVG; empty when there is too little to draw."""
    lines = {name: points for name, points in series.items() if len(points) > 1}
    if not lines:
        return ""
    points = [point for line in lines.values() for point in line]
    columns, rows = decades([x for x, _ in points]), decades([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        along = (math.log10(x) - columns[0]) / (columns[-1] - columns[0])
        above = (math.log10(y) - rows[0]) / (rows[-1] - rows[0])
        return (
            _LEFT + along * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - above * (_HEIGHT - _TOP - _BOTTOM),
        )

    parts = _beginning(title, f"{title} ({up})", _HEIGHT)
    for power in columns:
        x, bottom = place(10.0**power, 10.0 ** rows[0])
        parts.append(f'<path class="axis" d="M{x:.1f} {bottom:.1f}V{_TOP}"/>')
        parts.append(_text(x, bottom + 18, f"{10**power:,g}", "middle"))
    for power in rows:
        left, y = place(10.0 ** columns[0], 10.0**power)
        parts.append(f'<path class="axis" d="M{left:.1f} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(_text(left - 8, y + 4, f"{10.0**power:,g}", "end"))
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, across, "middle"))
    ends = spread([place(*line[-1])[1] for line in lines.values()])
    for colour, (name, line), end in zip(_COLOURS, lines.items(), ends, strict=False):
        spots = [place(x, y) for x, y in line]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in spots]
        box = f'x="{_WIDTH - _RIGHT + 12}" y="{end - 5:.1f}" width="12" height="4"'
        parts.append(f'<rect {box} fill="{colour}"/>')
        parts.append(_text(_WIDTH - _RIGHT + 30, end + 2, name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def decades(values: Sequence[float]) -> list[int]:
    """Return the powers of ten around these values."""
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return list(range(first, max(last, first + 1) + 1))


def spread(heights: Sequence[float], apart: float = 18.0) -> list[float]:
    """Return heights for the names of lines that end there, none over another."""
    found = dict.fromkeys(range(len(heights)), 0.0)
    last = -math.inf
    for number in sorted(found, key=lambda each: heights[each]):
        last = max(heights[number], last + apart)
        found[number] = last
    return [found[number] for number in range(len(heights))]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


if __name__ == "__main__":
    main()
