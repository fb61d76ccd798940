"""How far a job is, out of what jobs print."""

import json
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcos_tensorflow.task.output import progress_log
from dcos_tensorflow.task.output.progress import (
    MAX_METRICS,
    Progress,
    begin_start,
    numbers_of,
    read_event_step,
    read_line,
    read_record,
    read_scalar,
    telling_lines,
)
from dcos_tensorflow.task.output.progress_log import ProgressLog


def after(*lines):
    progress = Progress()
    for line in lines:
        progress = read_line(progress, line, 5.0)
    return progress


def numbers(*lines):
    progress = after(*lines)
    return progress.step, progress.loss, progress.accuracy


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step 120 loss 0.34 accuracy 0.91", (120, 0.34, 0.91)),
        ("Step: 120, loss = 3.4e-1", (120, 0.34, None)),
        ("global_step=7 loss=1", (7, 1.0, None)),
        ("Global step 7: training loss 1.5", (7, 1.5, None)),
        ("Step #100 - train_loss: .5 - acc: 97.5%", (100, 0.5, 0.975)),
        ("step 100/1000 loss 2", (100, 2.0, None)),
        ("INFO:tensorflow:loss = 0.12, step = 200 (1.2 sec)", (200, 0.12, None)),
        ("INFO:tensorflow:global_step/sec: 123.4", (None, None, None)),
        ("45/45 - 0s - loss: 0.5 - accuracy: 0.9 - 3ms/step", (45, 0.5, 0.9)),
        ("45/45 - 0s - 2ms/step - accuracy: 0.75 - loss: 1.54", (45, 1.54, 0.75)),
        ("10/45 [==>...] - ETA: 0s - loss: 0.5 - sparse_categorical_accuracy: 0.9", (10, 0.5, 0.9)),
        ("45/45 - 0s - loss: 0.5 - val_loss: 9 - val_accuracy: 0.1", (45, 0.5, None)),
        ('{"step": 3, "loss": 0.1}', (3, 0.1, None)),
        ("step 5 loss inf", (5, math.inf, None)),
        ("loss: -Infinity", (None, -math.inf, None)),
        ("loss information of step 5", (5, None, None)),
        ("loss inf-like, loss nano", (None, None, None)),
        ("a step further 12", (None, None, None)),
        ("timestep 12 footsteps 13", (None, None, None)),
        (
            "W0000 00:00:1795331357.616110   21188 local_rendezvous.cc:412] Local rendezvous is "
            "aborting with status: ABORTED: Step 7564124229747301 cancelled.",
            (None, None, None),
        ),
        (
            "2026-11-22 07:09:50.627879: W tensorflow/core/framework/local_rendezvous.cc:404] "
            "Local rendezvous is aborting with status: ABORTED: Step 1234567 cancelled.",
            (None, None, None),
        ),
        ("AbortedError: Step 7564124229747301 cancelled.  Cancelling", (None, None, None)),
        ("Step id 7564124229747301, step 7564124229747301", (None, None, None)),
        ("I1122 07:09:50.6 20949 trainer.cc:55] step 120 loss 0.34", (120, 0.34, None)),
        ("2026-11-21 06:15:28 nothing to see", (None, None, None)),
        ("", (None, None, None)),
    ],
)
def test_the_usual_forms_are_understood(line, expected):
    assert numbers(line) == expected


def test_the_newest_number_wins_and_the_others_stay():
    assert numbers("step 1 loss 9 accuracy 0.1", "step 2 loss 8") == (2, 8.0, 0.1)


def test_keras_epochs_are_counted_into_the_step():
    progress = after("Epoch 3/10", "45/45 - 0s - loss: 0.5")
    assert (progress.epoch, progress.epochs, progress.step) == (3, 10, 135)


def test_terminal_codes_do_not_hide_a_number():
    assert numbers("\x1b[1m45/45\x1b[0m \x08\x08 - loss: 0.5") == (45, 0.5, None)


def test_a_result_line_is_kept():
    assert after('INFO result: {"test_accuracy": 0.97}').result == {"test_accuracy": 0.97}


def test_a_result_that_is_no_json_is_passed_over():
    assert after("result: {test_accuracy 0.97}").result is None


def test_very_long_lines_are_not_searched():
    assert numbers("step 1 " + "x" * 5000) == (None, None, None)


def test_the_time_is_that_of_the_last_line_with_a_number():
    progress = read_line(Progress(), "step 1", 5.0)
    assert read_line(progress, "nothing 2 see", 9.0).at == 5.0


def test_records_of_the_progress_file_are_understood():
    progress = read_record(Progress(), '{"step": 4, "loss": 0.5, "accuracy": 0.8}', 1.0)
    assert (progress.step, progress.loss, progress.accuracy, progress.at) == (4, 0.5, 0.8, 1.0)


def test_a_result_record_is_kept_beside_the_numbers():
    progress = read_record(Progress(step=4), '{"result": {"model": "/m"}}', 1.0)
    assert (progress.step, progress.result) == (4, {"model": "/m"})


@pytest.mark.parametrize(
    "line", ["", "{", "[1]", '{"step": "x"}', '{"loss": "x"}', '{"step": null}', '{"step": NaN}']
)
def test_records_that_tell_nothing_change_nothing(line):
    assert read_record(Progress(step=1, at=2.0), line, 3.0) == Progress(step=1, at=2.0)


@pytest.mark.parametrize("word", ["step", "loss", "accuracy", "result"])
def test_a_padded_line_is_read_in_no_time(word):
    started = time.process_time()
    read_line(Progress(), word + " " * 3900, 0.0)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "record",
    [
        '{"step": %s}' % ("9" * 400),
        '{"loss": %s}' % ("9" * 400),
        '{"result": {"a": %s}}' % ("[" * 30 + "]" * 30),
        '{"result": %s' % ("[" * 9000),
    ],
)
def test_a_record_that_cannot_be_passed_on_is_passed_over(record):
    assert read_record(Progress(), record, 1.0) == Progress()


def test_a_number_that_json_cannot_carry_is_told_in_a_result_by_its_name():
    told = read_record(Progress(), '{"result": {"a": 1e999, "b": [NaN], "c": -1e999}}', 1.0)
    assert told.result == {"a": "Infinity", "b": ["NaN"], "c": "-Infinity"}


@pytest.mark.parametrize("line", ["step 5 loss nan auc NaN", "step 5, loss: NaN, auc: nan"])
def test_a_value_that_is_not_finite_is_told_by_its_name(line):
    told = after("step 4 loss 0.5 auc 0.7", line).as_json()
    assert (told["step"], told["loss"], told["metrics"]) == (5, "NaN", {"auc": "NaN"})


def test_a_record_may_tell_a_value_that_is_not_finite_by_its_name():
    told = read_record(Progress(), '{"loss": "NaN", "auc": "Infinity", "word": "nan"}', 1.0)
    assert told.as_json()["loss"] == "NaN"
    assert told.metrics == {"auc": math.inf}


def test_different_steps_of_one_start_are_counted():
    progress = after("step 1", "step 1", "step 2 loss 1")
    assert (progress.start_step, progress.start_steps) == (2, 2)


def test_another_start_keeps_what_is_known_and_counts_anew():
    progress = begin_start(after("step 1", "step 2"))
    assert (progress.step, progress.start_step, progress.start_steps) == (2, None, 0)


def test_the_step_of_event_files_counts_where_the_job_tells_none():
    progress = read_event_step(after("loss 0.5"), 40, 9.0)
    assert (progress.step, progress.start_step, progress.at) == (40, 40, 9.0)


def test_the_step_that_the_job_tells_counts_more_than_that_of_event_files():
    told = after("step 7")
    assert read_event_step(told, 40, 9.0) == told


def test_a_number_that_no_training_reaches_is_no_step():
    told = '{"step": 7564124229747301, "loss": 0.5}'
    assert read_record(Progress(), told, 5.0).step is None
    assert read_event_step(Progress(), 7564124229747301, 5.0).step is None


def test_the_same_step_of_event_files_again_is_no_news():
    progress = read_event_step(Progress(), 40, 9.0)
    assert read_event_step(progress, 40, 10.0) == progress


def test_other_numbers_of_a_record_are_metrics_by_their_names():
    told = read_record(Progress(), '{"step": 1, "loss": 2, "val_auc": 0.5, "name": "x"}', 1.0)
    told = read_record(told, '{"step": 2, "val_auc": NaN, "f1": 0.25}', 2.0)
    assert told.as_json()["metrics"] == {"val_auc": "NaN", "f1": 0.25}


def test_so_many_metrics_are_kept_and_no_more():
    many = json.dumps({f"m{number}": number for number in range(1000)} | {"x" * 1000: 1})
    told = read_record(Progress(), many, 1.0)
    told = read_record(told, '{"m0": 7, "another": 1}', 2.0)
    assert len(told.metrics) == MAX_METRICS
    assert (told.metrics["m0"], "another" in told.metrics) == (7, False)


def test_a_scalar_of_the_event_files_counts_unless_the_job_tells_it_itself():
    progress = after("step 3 auc 0.5")
    for name, value in (("auc", 0.9), ("val_auc", 0.25), ("loss", 0.125), ("bad", math.inf)):
        progress = read_scalar(progress, name, value, 9.0)
    assert numbers_of(progress) == {"auc": 0.5, "val_auc": 0.25, "loss": 0.125, "bad": math.inf}


def test_scalars_without_end_are_as_many_as_other_metrics():
    progress = Progress()
    for number in range(2 * MAX_METRICS):
        progress = read_scalar(progress, f"m{number}", 1.0, 9.0)
    assert len(progress.metrics) == MAX_METRICS


_WORDS = st.sampled_from(
    ["step 7", "Loss: 0.5", "acc 98%", "Epoch 2/9", 'result: {"a": 1}', "auc=0.9", "nothing", "é"]
)


@settings(deadline=None)
@given(st.lists(st.lists(_WORDS, max_size=3).map(" ".join), max_size=20))
def test_lines_that_are_left_out_tell_nothing(printed: list[str]) -> None:
    block = "".join(f"{line}\n" for line in printed).encode()
    every, some = Progress(), Progress()
    for line in printed:
        every = read_line(every, line, 5.0)
    for line in telling_lines(block, len(block)):
        some = read_line(some, line, 5.0)
    assert some == every


def test_of_more_lines_than_may_be_looked_at_the_newest_of_each_kind_count() -> None:
    lines = [f"step {number} loss {number / 8}" for number in range(10_000)]
    lines[5_000] += '\nresult: {"auc": 0.5}\nval_auc: 0.75, f1: 0.5'
    found = telling_lines("".join(f"{line}\n" for line in lines).encode(), 100)
    known = Progress()
    for line in found:
        known = read_line(known, line, 5.0)
    assert len(found) < 20
    assert (known.step, known.loss, known.result) == (9_999, 9_999 / 8, {"auc": 0.5})
    assert known.metrics == {"val_auc": 0.75, "f1": 0.5}


def test_a_job_that_prints_without_end_has_few_of_its_lines_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(progress_log.time, "monotonic", lambda: 100.0)
    monkeypatch.setattr(
        progress_log.progress, "read_line", lambda known, line, now: looked.append(line) or known
    )
    log, blocks = ProgressLog(), 100
    for block in range(blocks):
        log.read_block(b"".join(b"step %d loss 0.5\n" % (block * 1000 + n) for n in range(1000)))
    assert (log.count, looked[-1]) == (100_000, "step 99999 loss 0.5")
    assert len(looked) <= progress_log.MOST_LOOKS + 2 * 2 * blocks
    assert log.lines()[-1] == "step 99999 loss 0.5"


def test_what_a_job_prints_slowly_is_all_looked_at() -> None:
    log = ProgressLog()
    for number in range(progress_log.MOST_LOOKS // 2):
        log.read_block(b"m%d_auc: 0.5, step %d\n" % (number % 20, number))
    assert len(log.known.metrics) == 20
    assert log.known.start_steps == progress_log.MOST_LOOKS // 2


def test_the_step_of_what_was_told_before_the_newest_one_is_told() -> None:
    known = after("step 5 loss 0.5 val_loss 0.25", "step 6 loss 0.5")
    assert known.as_json()["told_at"] == {"val_loss": 5}


def test_the_least_and_the_most_of_before_are_told_with_their_steps() -> None:
    known = after("step 1 loss 0.9", "step 2 loss 0.1", "step 3 loss nan", "step 4 loss 0.5")
    assert known.as_json()["extremes"] == {"loss": [[2, 0.1], [1, 0.9]]}


def test_the_mean_of_an_epochs_first_batches_is_no_extreme() -> None:
    first = ("Epoch 1/2", "1/20 - loss: 9.0", "20/20 - loss: 0.5")
    known = after(*first, "Epoch 2/2", "1/20 - loss: 0.1", "20/20 - loss: 0.625")
    assert known.as_json()["extremes"] == {"loss": [[20, 0.5]]}


def test_the_bar_of_an_evaluation_is_no_step_of_the_training() -> None:
    lines = [
        "Epoch 2/2",
        "210/210 - 5s - loss: 0.5 - accuracy: 0.75 - val_loss: 0.625",
        "313/313 - 1s - loss: 0.25 - accuracy: 0.875",
    ]
    known = after(*lines)
    assert (known.step, known.loss, known.accuracy) == (420, 0.5, 0.75)
    assert known.metrics == {"val_loss": 0.625, "eval_loss": 0.25, "eval_accuracy": 0.875}


def test_each_of_several_trainings_of_one_epoch_tells_its_loss() -> None:
    one = ("20/20 - loss: 0.5", "5/5 - loss: 0.75")
    known = after(*one, "20/20 - loss: 0.25", "1/5 - loss: 0.625")
    assert (known.step, known.loss, known.metrics) == (20, 0.25, {"eval_loss": 0.625})


@pytest.mark.parametrize(
    ("line", "metrics"),
    [
        ("Test loss: 0.25", {"test_loss": 0.25}),
        ("Test Loss: 0.25, Test Accuracy: 90%", {"test_loss": 0.25, "test_accuracy": 0.9}),
        ("validation loss = 0.25", {"validation_loss": 0.25}),
    ],
)
def test_a_number_of_other_examples_is_none_of_the_training(line, metrics) -> None:
    known = after("step 7 loss 0.5", line)
    assert (known.loss, known.accuracy, known.metrics) == (0.5, None, metrics)
