"""``Sweep`` and ``Batch``: jobs that work on many units, asked and steered from Python.

Beside the answers of a ``Job`` they have those of the commands ``sweep`` and ``batch``, of a job
that runs and of one that has ended.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.snapshot import Json, Snapshot
from dcos_tensorflow.client.units import batch_lines, board_lines, seconds_left, units_document
from dcos_tensorflow.core.job_parameters import variable
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, UnitKind
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.estimator import metric_rows
from dcos_tensorflow.estimator.job import Job, kept_spec
from dcos_tensorflow.estimator.notebook import Drawing, as_html
from dcos_tensorflow.workloads.sweep.leaderboard import Board, Row, board_of
from dcos_tensorflow.workloads.sweep.picture import picture

#: Trials that a notebook shows of the leaderboard.
_MAX_ROWS = 20
#: What becomes of a shard, in this order.
_STATES = ("waiting", "running", "succeeded", "failed")


class Sweep(Job):
    """The newest sweep of a service of this machine, of ``TensorFlow.sweep`` or ``attach``."""

    def leaderboard(self) -> Any:
        """Return the trials, the best first, as a frame of pandas.

        Where pandas is not installed it is the list of the frame's rows. A row has what ``best``
        has, with a column for each parameter.
        """
        return metric_rows.frame(rows_of(self._board()))

    @property
    def best(self) -> Row | None:
        """Return the best trial: ``number``, ``parameters``, ``value``; None for none yet."""
        return self._board().best

    def _board(self) -> Board:
        return board_of(units_document(ServiceChoice(self._work, self.name), str(UnitKind.TRIAL)))

    def _drawing(self) -> Drawing:
        return DrawnUnits(self._drawn)

    def _drawn(self) -> str:
        board = self._board()
        table = _lines(board_lines(board, _MAX_ROWS))
        if board.best is None:
            return table
        # A picture of its own: its style is not the page's.
        drawn = b64encode(picture(board, self.name).encode()).decode()
        return f'{table}<img width="900" src="data:image/svg+xml;base64,{drawn}">'


class Batch(Job):
    """The newest batch of a service of this machine, of ``TensorFlow.batch`` or ``attach``."""

    @property
    def progress(self) -> Mapping[str, Any]:
        """Return how many shards there are in all (``total``), and how many in each state.

        States are waiting, running, succeeded and failed; ``seconds_left`` is how long the rest
        takes at the pace of the newest shards, None where that is not known.
        """
        told = self._shards()
        counts = {state: told["counts"][state] for state in _STATES}
        return {"total": told["total"], **counts, "seconds_left": seconds_left(told)}

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Return the shards that have failed: ``index``, ``begin``, ``end`` and ``why``."""
        return list(self._shards()["units"])

    @property
    def output(self) -> str:
        """Return where the output is, a path or a URL with ``{index}`` in it."""
        spec = kept_spec(self._directory, self.name)
        work = spec.workload if spec is not None else None
        return work.output if isinstance(work, BatchSpec) else ""

    def _shards(self) -> Mapping[str, Any]:
        """Return what is told of all shards, and those of them that have failed."""
        return units_document(ServiceChoice(self._work, self.name), str(UnitKind.SHARD), "failed")

    def _drawing(self) -> Drawing:
        return DrawnUnits(lambda: _lines(batch_lines(self._shards())))


def kind_of(spec: ServiceSpec | None) -> type[Job]:
    """Return as what a job is asked."""
    units = spec.units if spec is not None else None
    if units is None:
        return Job
    return Sweep if units.kind is UnitKind.TRIAL else Batch


class DrawnUnits:
    """What is told of units in a notebook (``notebook.Drawing``), asked for when that changes."""

    def __init__(self, draw: Callable[[], str]) -> None:
        self._draw = draw
        self._seen: Json | None = {}
        self._drawn = ""

    def html(self, snapshot: Snapshot | None) -> str:
        """Return what was told when the units had last gone on, or ended."""
        units = snapshot.units if snapshot is not None else None
        if units != self._seen:
            # The thread that follows the job hears that no scheduler answers for it.
            with suppress(CliError):
                self._drawn, self._seen = self._draw(), units
        return self._drawn


def rows_of(board: Board) -> list[metric_rows.MetricRow]:
    """Return the trials with a column for each parameter.

    One that is called like another column has the name of its variable.
    """
    found = []
    for row in board.rows:
        facts = dict(vars(row))
        told = facts.pop("parameters")
        own = {variable(name) if name in facts else name: value for name, value in told.items()}
        found.append({"rank": row.rank, **facts, **own})
    return found


def _lines(lines: Iterable[str]) -> str:
    return f"<pre>{'<br>'.join(map(as_html, lines))}</pre>"
