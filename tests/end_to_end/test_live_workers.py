"""Workers of a ParameterServerStrategy join and leave while it trains: no step is lost."""

import pytest

from command_line import NEWEST, NO_KERAS, OLD
from data_files import PROGRAMS
from waiting import eventually

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(400)]

LOOP = "counted_steps.py"
FIT = "counted_fit.py"
SMALL = [
    f"{role}.{need}"
    for role in ("chief", "parameter_server", "worker")
    for need in ("cpus=0.2", "mem=1000")
]


@pytest.mark.parametrize(
    "case",
    [
        (LOOP, NEWEST, (2, 1)),
        *(
            pytest.param((code, each, (3, 1, 2)), marks=pytest.mark.soak)
            for code in (LOOP, FIT)
            for each in (NEWEST, OLD)
        ),
    ],
)
def test_workers_join_and_leave_and_every_step_counts_once(
    local_cluster, tensorflow, tmp_path, case
):
    code, version, counts = case
    name = f"live-{len(counts)}-{version.replace('.', '-')}"
    stop, told = tmp_path / "stop", tmp_path / "told"
    settings = [f"service.python={tensorflow(version)}", *SMALL]
    if code == LOOP or version == NEWEST:
        settings.append("service.legacy_keras=true")
    if code == LOOP:
        settings.append(f"service.env={NO_KERAS['env']}")
    sets = [word for setting in settings for word in ("--set", setting)]
    file = PROGRAMS / code
    words = ("run", file, "--name", name, "--ps", "1", "--workers", "1", "--yes", *sets)
    run = local_cluster.start(*words, "--", str(stop), str(told))

    def lines():
        text = told.read_text() if told.exists() else ""
        return [tuple(map(int, line.split())) for line in text.splitlines(keepends=True)[:-1]]

    def trains_with(workers):
        eventually(
            lambda: (lines()[-1:] and lines()[-1][2] == workers) or run.poll() is not None,
            seconds=120,
            what=f"{workers} workers",
        )

    try:
        trains_with(1)
        for count in counts:
            changed = local_cluster("update", "start", name, "--set", f"worker.count={count}")
            assert changed.code == 0, changed.out
            trains_with(count)
        stop.touch()
        out, _ = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 0, out[-4000:]
    steps = [(scheduled, counted) for scheduled, counted, _ in lines()]
    # From the first to the last, by one process.
    assert steps == [(n, n) for n in range(10, steps[-1][0] + 10, 10)]
