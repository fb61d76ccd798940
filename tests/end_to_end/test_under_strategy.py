"""``run --strategy``: a Keras script of one task trains on several, and is not edited for that."""

import pytest

from command_line import EXAMPLES, NEWEST, OLD, accuracy_in

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(700)]

DEADLINE = 300.0
SCRIPT = EXAMPLES / "one_task" / "train.py"
MIRRORED = ("mirrored", "--workers", "2")
SERVED = ("parameter_server", "--workers", "2", "--ps", "1")
#: In the gate each role is there once.
SMALL = ("parameter_server", "--workers", "1", "--ps", "1")


def row(way, version, keras="tf.keras", *, gate=False):
    marks = () if gate else (pytest.mark.soak,)
    return pytest.param(way, (version, keras), id=f"{way[0]}-{version}-{keras}", marks=marks)


@pytest.mark.parametrize(
    ("way", "code"),
    [
        row(MIRRORED, NEWEST, "keras", gate=True),
        row(MIRRORED, NEWEST),
        row(MIRRORED, OLD),
        row(SMALL, OLD, gate=True),
        row(SERVED, OLD),
        row(SERVED, NEWEST),
        row(SERVED, NEWEST, "keras"),
    ],
)
def test_a_script_of_one_task_trains_on_all_of_them(local_cluster, tensorflow, tmp_path, way, code):
    version, keras = code
    script = tmp_path / "train.py"
    text = SCRIPT.read_text().replace(
        "import tensorflow as tf", "import keras\nimport tensorflow as tf"
    )
    script.write_text(text.replace("tf.keras.", f"{keras}."))
    name = f"under-{way[0].replace('_', '-')}-{version.replace('.', '-')}"
    roles = ("chief", "parameter_server", "worker") if "--ps" in way else ("worker",)
    settings = [f"service.python={tensorflow(version)}", *(f"{role}.mem=1200" for role in roles)]
    sets = [word for setting in settings for word in ("--set", setting)]
    run = local_cluster.start("run", script, "--name", name, *sets, "--strategy", *way, "--yes")
    try:
        out, _ = run.communicate(timeout=DEADLINE)
    finally:
        run.kill()
    assert run.returncode == 0, out[-4000:]
    assert accuracy_in(out) > 0.8
    trainer = "chief-0" if "--ps" in way else "worker-0"
    tasks = local_cluster.home / "services" / name / "tasks"
    strategy = "ParameterServerStrategy" if "--ps" in way else "CollectiveAllReduceStrategy"
    assert f"strategy: {strategy}" in (tasks / trainer / "stdout").read_text()
    # The others train as well, and one model is kept.
    assert [file.parent.name for file in tasks.glob("*/model.keras")] == [trainer]
