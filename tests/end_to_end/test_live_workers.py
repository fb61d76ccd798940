"""Workers of a ParameterServerStrategy join and leave while it trains: no step is lost."""

from pathlib import Path

import pytest

from command_line import NEWEST, OLD
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
    ("code", "version"),
    [
        (LOOP, NEWEST),
        pytest.param(LOOP, OLD, marks=pytest.mark.soak),
        pytest.param(FIT, NEWEST, marks=pytest.mark.soak),
        pytest.param(FIT, OLD, marks=pytest.mark.soak),
    ],
)
def test_workers_join_and_leave_and_every_step_counts_once(
    local_cluster, tensorflow, tmp_path, code, version
):
    name, stop, told = f"live-{version.replace('.', '-')}", tmp_path / "stop", tmp_path / "told"
    settings = [f"service.python={tensorflow(version)}", *SMALL]
    if code == FIT and version == NEWEST:
        settings.append("service.legacy_keras=true")
    sets = [word for setting in settings for word in ("--set", setting)]
    words = (
        "run",
        Path(__file__).with_name(code),
        "--name",
        name,
        "--ps",
        "1",
        "--workers",
        "1",
        "--yes",
        *sets,
    )
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
        for count in (3, 1, 2):
            changed = local_cluster("update", "start", name, "--set", f"worker.count={count}")
            assert changed.code == 0, changed.out
            trains_with(count)
        stop.touch()
        out, _ = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 0, out[-4000:]
    counts = [(scheduled, counted) for scheduled, counted, _ in lines()]
    # From the first to the last, by one process.
    assert counts == [(n, n) for n in range(50, counts[-1][0] + 50, 50)]
