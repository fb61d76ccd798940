"""Who restarts when a task is lost: every row of the table, written out from what was measured.

The gang is a chief, two workers and two parameter servers, as each row reads in docs/recovery.md.
"""

import pytest

from dcos_tensorflow.core.restarts.restart_table import (
    RESTART_SETS,
    STALLED_SETS,
    Loss,
    Part,
    part_of,
    restart_set,
)
from dcos_tensorflow.core.spec.service_spec import Strategy

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER
SESSIONS, ALONE = Strategy.BETWEEN_GRAPH, Strategy.INDEPENDENT
PROCESS, MOVED, SILENT, STALLED = Loss.PROCESS, Loss.MOVED, Loss.SILENT, Loss.STALLED

CHIEF, WORKERS, SERVERS = "chief-0", "worker-0 worker-1", "ps-0 ps-1"
MEMBERS = f"{CHIEF} {WORKERS} {SERVERS}".split()
EVERYBODY = f"{CHIEF} {WORKERS} {SERVERS}"

ROWS = [
    # ParameterServerStrategy: the chief coordinates; workers are replaceable, variables are not.
    (PSS, "worker-1", PROCESS, "worker-1"),
    (PSS, "worker-1", MOVED, "chief-0 worker-1"),
    (PSS, "worker-1", SILENT, "chief-0 worker-1"),
    (PSS, "ps-0", PROCESS, "chief-0 ps-0"),
    (PSS, "ps-0", MOVED, "chief-0 ps-0"),
    (PSS, "ps-0", SILENT, "chief-0 worker-0 worker-1 ps-0"),
    (PSS, "chief-0", PROCESS, "chief-0"),
    (PSS, "chief-0", MOVED, "chief-0"),
    (PSS, "chief-0", SILENT, "chief-0"),
    # MultiWorkerMirrored: every member ends when one of them does.
    (MWMS, "worker-1", PROCESS, EVERYBODY),
    (MWMS, "worker-1", MOVED, EVERYBODY),
    (MWMS, "worker-1", SILENT, EVERYBODY),
    (MWMS, "chief-0", PROCESS, EVERYBODY),
    (MWMS, "chief-0", MOVED, EVERYBODY),
    (MWMS, "chief-0", SILENT, EVERYBODY),
    (MWMS, "ps-0", PROCESS, EVERYBODY),
    (MWMS, "ps-0", MOVED, EVERYBODY),
    (MWMS, "ps-0", SILENT, EVERYBODY),
    # Sessions: they wait for a peer at its address, and never find it at another.
    (SESSIONS, "worker-1", PROCESS, "worker-1"),
    (SESSIONS, "worker-1", MOVED, EVERYBODY),
    (SESSIONS, "worker-1", SILENT, "worker-1"),
    (SESSIONS, "ps-0", PROCESS, "ps-0"),
    (SESSIONS, "ps-0", MOVED, "chief-0 worker-0 worker-1 ps-0"),
    (SESSIONS, "ps-0", SILENT, "chief-0 worker-0 worker-1 ps-0"),
    (SESSIONS, "chief-0", PROCESS, "chief-0"),
    (SESSIONS, "chief-0", MOVED, EVERYBODY),
    (SESSIONS, "chief-0", SILENT, "chief-0"),
    # Tasks that know nothing of each other.
    (ALONE, "worker-1", PROCESS, "worker-1"),
    (ALONE, "worker-1", MOVED, "worker-1"),
    (ALONE, "worker-1", SILENT, "worker-1"),
    (ALONE, "ps-0", PROCESS, "ps-0"),
    (ALONE, "ps-0", MOVED, "ps-0"),
    (ALONE, "ps-0", SILENT, "ps-0"),
    (ALONE, "chief-0", PROCESS, "chief-0"),
    (ALONE, "chief-0", MOVED, "chief-0"),
    (ALONE, "chief-0", SILENT, "chief-0"),
    # A training that stands still: who waits for whom is unknown.
    (PSS, "worker-1", STALLED, EVERYBODY),
    (MWMS, "worker-1", STALLED, EVERYBODY),
    (SESSIONS, "worker-1", STALLED, EVERYBODY),
    (ALONE, "worker-1", STALLED, "worker-1"),
]


@pytest.mark.parametrize(("strategy", "lost", "loss", "who"), ROWS)
def test_who_restarts_when_one_is_lost(strategy, lost, loss, who):
    assert restart_set(strategy, "chief-0", MEMBERS, {lost: loss}) == tuple(who.split())


def test_every_row_of_the_table_is_among_these():
    written = {
        (s, part_of(lost, "chief-0"), loss) for s, lost, loss, _ in ROWS if loss is not STALLED
    }
    assert written == {(s, part, loss) for s, rows in RESTART_SETS.items() for part, loss in rows}
    assert {s for s, _, loss, _ in ROWS if loss is STALLED} == set(STALLED_SETS)


def test_two_lost_at_once_restart_with_everybody_whom_either_concerns():
    losses = {"worker-1": PROCESS, "ps-1": PROCESS}
    assert restart_set(PSS, "chief-0", MEMBERS, losses) == ("chief-0", "worker-1", "ps-1")


def test_who_is_not_a_member_any_more_does_not_restart_but_its_peers_may():
    members = [m for m in MEMBERS if m != "worker-1"]
    assert restart_set(PSS, "chief-0", members, {"worker-1": MOVED}) == ("chief-0",)


def test_worker_0_is_the_chief_where_no_task_has_that_role():
    assert part_of("worker-0", "worker-0") is Part.CHIEF
    assert part_of("worker-1", "worker-0") is Part.WORKER
    assert part_of("gpu-worker-0", "worker-0") is Part.WORKER
    assert part_of("ps-0", "worker-0") is Part.PS


def test_gpu_workers_restart_as_workers_do():
    members = ("worker-0", "gpu-worker-0", "ps-0")
    assert restart_set(PSS, "worker-0", members, {"ps-0": SILENT}) == members
