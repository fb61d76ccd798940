"""What a task has told of its training, as rows."""

import sys

import pytest

from dcos_tensorflow.estimator.metric_rows import frame, rows_of

KERAS = [
    "Epoch 1/2",
    "2/2 ━━━━ 0s 5ms/step - accuracy: 0.5000 - loss: 1.2000",
    "Epoch 2/2",
    "2/2 ━━━━ 0s 5ms/step - accuracy: 0.7500 - loss: 0.9000",
]


def test_a_number_that_a_traceback_quotes_is_no_row() -> None:
    printed = [
        "step 7 loss 0.5",
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    fit(model, step=60, loss=0.25)",
        "ValueError: step 61 loss 0.125",
    ]
    assert rows_of("worker-0", printed, []) == [{"task": "worker-0", "step": 7, "loss": 0.5}]


def test_a_loss_that_is_not_finite_is_a_float() -> None:
    records = ['{"step": 3, "loss": "Infinity"}']
    assert rows_of("worker-0", [], records) == [
        {"task": "worker-0", "step": 3, "loss": float("inf")}
    ]


def test_a_row_is_a_line_of_the_progress_file_with_all_its_numbers():
    records = ['{"step": 1, "loss": 0.5, "val_auc": 0.7, "result": {"a": 1}}', '{"step": 2, "lo']
    assert rows_of("worker-0", ["step 9 loss 9"], records) == [
        {"task": "worker-0", "step": 1, "loss": 0.5, "val_auc": 0.7}
    ]


def test_without_a_progress_file_a_row_is_a_printed_line_that_tells_a_number():
    printed = ["begins", "step 10 loss 0.5", "step 20, loss 0.25, accuracy 91%", "ends"]
    assert rows_of("worker-0", printed, []) == [
        {"task": "worker-0", "step": 10, "loss": 0.5},
        {"task": "worker-0", "step": 20, "loss": 0.25, "accuracy": 0.91},
    ]


def test_an_epoch_that_was_told_before_its_steps_is_theirs():
    assert rows_of("worker-0", KERAS, []) == [
        {"task": "worker-0", "epoch": 1, "epochs": 2, "step": 2, "loss": 1.2, "accuracy": 0.5},
        {"task": "worker-0", "epoch": 2, "epochs": 2, "step": 4, "loss": 0.9, "accuracy": 0.75},
    ]


def test_rows_are_a_frame_where_pandas_is_installed(tmp_path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "pandas.py").write_text("def DataFrame(rows):\n    return ('a frame', rows)\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pandas"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    assert frame([{"step": 1}]) == ("a frame", [{"step": 1}])
    del sys.modules["pandas"]


def test_rows_are_a_list_where_pandas_is_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert frame([{"step": 1}]) == [{"step": 1}]
