"""What an order says of a unit of work, and what is told of it."""

import json
import math
from dataclasses import replace

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.output.measured import MeasuredCurve
from dcos_tensorflow.task.output.progress import Progress, numbers_of, read_line, read_record
from dcos_tensorflow.task.output.progress_log import ProgressLog
from dcos_tensorflow.task.spec import JobCode, RunnerSpec, StartOrder, TaskCluster, parse_order
from dcos_tensorflow.task.spec_fields import SpecError
from dcos_tensorflow.task.supervise.unit_work import own_part
from dcos_tensorflow.task.unit_order import (
    Measure,
    Payload,
    Shard,
    UnitOrder,
    context_of,
    parse_unit,
    result_of,
)

#: More than is kept of a unit.
MANY = Progress(metrics={f"metric-{number:050}": 0.1 for number in range(50)})


def payload(**fields):
    return parse_unit({"number": 17, "attempt": 2, "payload": fields}).payload


def test_an_order_carries_a_unit():
    shard = {"index": 5, "begin": -10, "end": 10, "prefix": "s3://b/", "names": ["x", "y"]}
    unit = {"number": 5, "attempt": 1, "payload": {"shard": shard, "env": {"A": "1"}, "known": 3}}
    order = parse_order(json.dumps({"epoch": 1, "start": 2, "run": True, "unit": unit}))
    assert order.unit.payload.shard == Shard(5, -10, 10, "s3://b/", ("x", "y"))
    assert order.unit.payload.shard.inputs == ("s3://b/x", "s3://b/y")
    assert order.unit.payload.env == {"A": "1"}


def test_an_order_may_carry_none():
    assert parse_order('{"epoch": 1, "start": 2, "run": true}').unit is None
    assert parse_order('{"epoch": 1, "start": 2, "run": true, "unit": null}').unit is None


@pytest.mark.parametrize("directory", ["/tmp", "../other", "a/../../b", "."])
def test_a_unit_cannot_leave_the_directories_of_its_task(directory):
    with pytest.raises(SpecError, match=r"unit\.payload\.directory"):
        payload(directory=directory)


def test_the_context_of_a_unit_is_laid_over_the_jobs():
    unit = UnitOrder(1, 1, Payload(context={"rate": 0.5}))
    assert json.loads(context_of(unit, '{"rate": 1, "layers": 2}')) == {"rate": 0.5, "layers": 2}
    assert json.loads(context_of(unit, "")) == {"rate": 0.5}
    assert context_of(UnitOrder(1, 1), "no JSON") == "no JSON"
    assert context_of(None, "") == ""


@pytest.mark.parametrize(
    ("role", "index", "own"), [("worker", 0, True), ("worker", 1, False), ("ps", 0, False)]
)
def test_one_task_of_a_slot_writes_the_output_and_measures(role, index, own):
    full = Payload(output="part-1", measure=Measure("loss", (1,)))
    cluster = TaskCluster(1, data_shard=(index, 2))
    spec = RunnerSpec("s", "slot-0-x", cluster, JobCode(), role=role)
    left = own_part(StartOrder(1, True, cluster, unit=UnitOrder(1, 1, full)), spec).unit.payload
    assert (left == full) is own
    assert bool(left.output) is own


def test_a_result_is_never_longer_than_what_is_kept():
    points = {0: (1, 0.5)}
    long = {"text": "x" * 3000, "accuracy": 0.9}
    told = result_of(Progress(loss=0.1, result=long), points, seconds=3.21)
    assert told == {
        "seconds": 3.21,
        "measured": [[1, 0.5]],
        "result": {"accuracy": 0.9},
        "metrics": {"loss": 0.1},
    }
    for told in (result_of(Progress(result=long), points), result_of(MANY, points)):
        assert len(json.dumps(told).encode()) <= contract.UNIT_RESULT_BYTES
        assert told["measured"] == [[1, 0.5]]


def test_what_a_unit_is_judged_by_is_never_left_out_of_its_result():
    name = min(MANY.metrics)
    told = result_of(replace(MANY, result={**MANY.metrics, name: 0.3}), {}, name)
    assert told == {"result": {name: 0.3}, "metrics": {name: 0.1}}


def measured(*told, path="", spans=(1, 3, 9)):
    """Return the points after lines that were printed, and records of the progress file."""
    return attempt(*told, path=path, spans=spans).points


def attempt(*told, path, spans=(1, 3, 9)):
    """Play one attempt of a unit that tells this; how it ends is not seen."""
    kept = MeasuredCurve(Measure("auc", spans), path, print)
    known = kept.before
    for one in told:
        before = known
        if isinstance(one, str):
            known = read_line(known, one, 1.0)
        else:
            known = read_record(known, json.dumps(one), 1.0)
        kept.see(before, known, printed=isinstance(one, str))
    kept.keep(at_once=True)
    return kept


def test_the_first_value_in_each_span_is_kept():
    told = [{"step": step, "auc": step / 100} for step in (0, 1, 2, 4, 5, 9, 30)]
    assert measured(*told) == {0: (1, 0.01), 1: (4, 0.04), 2: (9, 0.09)}


def test_a_value_counts_at_the_step_that_it_was_told_with():
    assert measured("step 1 auc 0.5", "step 4 loss 3", "step 5 auc 0.5") == {
        0: (1, 0.5),
        1: (5, 0.5),
    }


def test_the_progress_file_knows_better_than_what_was_printed():
    printed, exact = "step 1 auc 0.12", {"step": 1, "auc": 0.1234}
    assert measured(printed, exact) == measured(exact, printed) == {0: (1, 0.1234)}
    assert measured(printed, {"step": 2, "auc": 0.5}) == {0: (1, 0.12)}


def test_what_was_not_read_as_a_container_ended_is_there_for_the_next_attempt(tmp_path):
    kept, own = str(tmp_path / "measured.json"), tmp_path / "measured.jsonl"
    measured({"step": 1, "auc": 0.5}, path=kept)
    own.write_text('{"step": 1, "auc": 0.5}\n{"step": 3, "auc": 0.8}')
    log = ProgressLog()
    log.begin_unit(MeasuredCurve(Measure("auc", (1, 3, 9)), kept, print), False, print, str(own))
    assert log.points == {0: (1, 0.5), 1: (3, 0.8)}
    assert measured(path=kept) == {0: (1, 0.5), 1: (3, 0.8)}
    own.write_text('{"step": 9, "auc": 0.9}\n')
    log.read_file()
    assert log.points[2] == (9, 0.9)


def test_scalars_of_event_files_are_measured_until_the_job_tells_the_metric_itself():
    log = ProgressLog()
    log.begin_unit(MeasuredCurve(Measure("auc", (1, 3, 9)), "", print), False, print)
    log.read_scalars([(0, "auc", 0.1), (1, "auc", 0.2), (2, "auc", 0.3), (4, "loss", 0.5)])
    assert (log.points, log.misses_its_metric) == ({0: (1, 0.2)}, True)
    log.read_block(b"step 5 auc 0.7\n")
    assert (log.points, log.misses_its_metric) == ({0: (1, 0.2), 1: (5, 0.7)}, False)


def test_what_was_measured_before_is_there_for_the_next_attempt(tmp_path):
    path = str(tmp_path / "measured.json")
    measured("step 1 auc 0.5", path=path)
    assert measured("step 2 auc 0.7", "step 3 auc 0.8", path=path) == {0: (1, 0.5), 1: (3, 0.8)}


@pytest.mark.parametrize("spans", [(1, 3, 9), ()])
def test_what_was_told_before_counts_where_the_next_attempt_has_nothing_to_tell(tmp_path, spans):
    path = str(tmp_path / "measured.json")
    attempt("step 1 loss 3 auc 0.5", "step 2 loss 2 auc 0.7", path=path, spans=spans)
    attempt('result: {"auc": 0.75}', path=path, spans=spans)
    last = attempt(path=path, spans=spans).before
    assert numbers_of(last) == {"loss": 2.0, "auc": 0.7}
    assert last.result == {"auc": 0.75}


def test_what_an_attempt_tells_takes_the_place_of_what_was_told_before(tmp_path):
    path = str(tmp_path / "measured.json")
    attempt("step 1 loss 3 auc 0.5", path=path)
    attempt("step 2 loss 2 auc 0.7", path=path)
    assert numbers_of(attempt(path=path).before) == {"loss": 2.0, "auc": 0.7}


def test_a_value_that_is_not_finite_is_kept_as_json_can_hold_it(tmp_path):
    path = tmp_path / "measured.json"
    attempt("step 1 loss inf auc nan", 'result: {"auc": NaN}', path=str(path))
    kept = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert kept == {
        "measured": [[1, "NaN"]],
        "metrics": {"loss": "Infinity", "auc": "NaN"},
        "result": {"auc": "NaN"},
    }
    again = attempt(path=str(path))
    assert again.before.loss == math.inf
    assert math.isnan(again.points[0][1])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        '{"a": 1}',
        '{"measured": [1]}',
        '{"measured": 7, "metrics": [], "result": 1}',
        '{"measured": [[NaN, 1]], "metrics": {"auc": "x", "loss": "nan"}}',
    ],
)
def test_a_damaged_file_is_none(tmp_path, text):
    (tmp_path / "measured.json").write_text(text)
    path = str(tmp_path / "measured.json")
    assert MeasuredCurve(Measure("auc"), path, print).before == Progress()
    assert measured("step 2 auc 0.7", path=path) == {0: (2, 0.7)}


@pytest.mark.parametrize(
    ("line", "metrics"),
    [
        (
            "45/45 - 0s - loss: 0.5 - val_loss: 0.25 - val_auc: 0.75",
            {"val_loss": 0.25, "val_auc": 0.75},
        ),
        ("step 3 loss 0.2 auc 0.9", {"auc": 0.9}),
        ("step=3, mean_error=1e-3 (2.1 sec)", {"mean_error": 0.001}),
        ("epoch 3 took 12 s", {}),
        ("12:30:45 step 3: train.py:17 loss nan", {}),
        ("auc: 0.9", {"auc": 0.9}),
        ("listening on port: 80", {}),
    ],
)
def test_metrics_are_read_from_lines_that_tell_progress(line, metrics):
    assert read_line(Progress(), line, 1.0).metrics == metrics
