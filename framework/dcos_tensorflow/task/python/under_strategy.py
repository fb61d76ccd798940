"""Trains code that was written for one task on several, unedited (``service.under_strategy``).

``wrapper`` calls ``enter`` in the user's process before the user's code is imported. Models are
then built and compiled under the strategy of the cluster: ``ParameterServerStrategy`` where it has
parameter servers, whose chief alone runs the code, else ``MultiWorkerMirroredStrategy``. A batch of
the code stays the batch of one step. Only the public interface of TensorFlow is used, and Keras 2:
the ``fit`` of Keras 3 knows no strategy of several processes.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import math
import os
import sys
import tempfile
from typing import Any, Dict, Optional, Sequence, Tuple

from dcos_tensorflow.core import contract

_LEGACY_KERAS = "TF_USE_LEGACY_KERAS"
#: What Keras takes where no batch size is said.
_BATCH = 32
#: So many examples are shuffled together.
_SHUFFLED = 10_000


class CannotEnter(Exception):
    """The code cannot be put under the strategy; the text says why."""


def enter() -> None:
    """Make the strategy the default of this process; parameter servers and their workers serve.

    Those do not return. Raises CannotEnter.
    """
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ.setdefault(_LEGACY_KERAS, "1")
        if os.environ[_LEGACY_KERAS] == "1":
            # What the code imports as keras would be Keras 3, which knows nothing of the strategy.
            sys.modules["keras"] = importlib.import_module("tf_keras")
    tensorflow = importlib.import_module("tensorflow")
    cluster = json.loads(os.environ.get(contract.TF_CONFIG) or "{}")
    task = cluster.get("task", {})
    resolver = tensorflow.distribute.cluster_resolver.TFConfigClusterResolver()
    if cluster.get("cluster", {}).get("ps"):
        if task["type"] != "chief":
            _serve(tensorflow, resolver, task)
        model = _keras_2(tensorflow)
        strategy = tensorflow.distribute.ParameterServerStrategy(resolver)
        _feed_by_steps(tensorflow, model)
    else:
        model = _keras_2(tensorflow)
        strategy = tensorflow.distribute.MultiWorkerMirroredStrategy()
        if task.get("type") == "worker" and task.get("index"):
            for name in ("save", "save_weights"):
                _save_apart(model, name)
    tensorflow.distribute.experimental_set_strategy(strategy)


def _keras_2(tensorflow: Any) -> Any:
    """Return Keras' Model. Raises CannotEnter for that of Keras 3."""
    keras = tensorflow.keras
    version = getattr(keras, "__version__", "") or getattr(keras, "version", lambda: "")()
    if str(version).startswith("3"):
        raise CannotEnter(
            f"service.under_strategy needs Keras 2, and TensorFlow {tensorflow.__version__} uses"
            f" Keras {version}: install tf_keras of TensorFlow's own version"
        )
    return keras.Model


def _serve(tensorflow: Any, resolver: Any, task: Dict[str, Any]) -> None:
    """Carry out what the chief says, until the service ends the task."""
    server = tensorflow.distribute.Server(
        resolver.cluster_spec(), job_name=task["type"], task_index=task["index"], protocol="grpc"
    )
    print(f"task-runner: {task['type']} {task['index']} is serving", flush=True)
    server.join()


def _save_apart(model: Any, name: str) -> None:
    """Have this worker save elsewhere than the first: both must save, and one model is kept."""
    save = getattr(model, name)

    @functools.wraps(save)
    def apart(self: Any, filepath: Any, *more: Any, **named: Any) -> Any:
        folder = tempfile.mkdtemp(prefix="not-the-first-worker-")
        place = os.path.join(folder, os.path.basename(os.path.normpath(str(filepath))))
        return save(self, place, *more, **named)

    setattr(model, name, apart)


def _feed_by_steps(tensorflow: Any, model: Any) -> None:
    """Let ``fit`` and ``evaluate`` take arrays: under parameter servers they ask for steps."""
    fit, evaluate = model.fit, model.evaluate

    @functools.wraps(fit)
    def fit_by_steps(
        self: Any, x: Any = None, y: Any = None, batch_size: Any = None, **named: Any
    ) -> Any:
        whole = [x, y, named.pop("sample_weight", None)]
        held, split = named.pop("validation_data", None), named.pop("validation_split", 0.0)
        if split and held is None:
            # As Keras does: the last ones, before any are shuffled.
            at = int(len(x) * (1 - split))
            held = tuple(part[at:] for part in whole if part is not None)
            whole = [None if part is None else part[:at] for part in whole]
        shuffle = bool(named.pop("shuffle", True))
        data, steps = _repeated(tensorflow, whole, batch_size, shuffle=shuffle)
        named["steps_per_epoch"] = named.get("steps_per_epoch") or steps
        if held is not None:
            size = named.pop("validation_batch_size", None) or batch_size
            held, steps = _repeated(tensorflow, held if isinstance(held, tuple) else [held], size)
            named["validation_steps"] = named.get("validation_steps") or steps
        return fit(self, data, validation_data=held, **named)

    @functools.wraps(evaluate)
    def evaluate_by_steps(
        self: Any, x: Any = None, y: Any = None, batch_size: Any = None, **named: Any
    ) -> Any:
        whole = [x, y, named.pop("sample_weight", None)]
        data, steps = _repeated(tensorflow, whole, batch_size)
        return evaluate(self, data, **{**named, "steps": named.get("steps") or steps})

    model.fit, model.evaluate = fit_by_steps, evaluate_by_steps


def _repeated(
    tensorflow: Any, whole: Sequence[Any], batch_size: Optional[int], *, shuffle: bool = False
) -> Tuple[Any, Optional[int]]:
    """Return data without end, and how many batches it has; None where that is not known."""
    first = whole[0]
    if not hasattr(first, "shape") and not isinstance(first, (list, dict, tuple)):
        # A dataset, whose batches are its author's; or what makes one.
        known = int(first.cardinality()) if hasattr(first, "cardinality") else -1
        return (first.repeat() if known >= 0 else first), (known if known > 0 else None)
    parts = tuple(part for part in whole if part is not None)
    data = tensorflow.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])
    count, size = int(data.cardinality()), batch_size or _BATCH
    if shuffle:
        data = data.shuffle(min(count, _SHUFFLED), reshuffle_each_iteration=True)
    return data.batch(size).repeat(), math.ceil(count / size)
