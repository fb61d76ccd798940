"""Trains code that was written for one task on several, unedited (``service.under_strategy``).

``wrapper`` calls ``enter`` in the user's process before the user's code is imported. Models are
then built and compiled under a ``MultiWorkerMirroredStrategy`` of all workers, and ``fit`` trains
them together: a batch of the code is the batch of all workers, as it is of one. Only the public
interface of TensorFlow is used, and Keras 2: the ``fit`` of Keras 3 knows no strategy of several
processes.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import tempfile
from typing import Any

from dcos_tensorflow.core import contract

_LEGACY_KERAS = "TF_USE_LEGACY_KERAS"


class CannotEnter(Exception):
    """The code cannot be put under the strategy; the text says why."""


def enter() -> None:
    """Make the strategy the default of this process. Raises CannotEnter."""
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ.setdefault(_LEGACY_KERAS, "1")
    tensorflow = importlib.import_module("tensorflow")
    keras = tensorflow.keras
    version = getattr(keras, "__version__", "") or getattr(keras, "version", lambda: "")()
    if str(version).startswith("3"):
        raise CannotEnter(
            f"service.under_strategy needs Keras 2, and TensorFlow {tensorflow.__version__} uses"
            f" Keras {version}: install tf_keras of TensorFlow's own version"
        )
    strategy = tensorflow.distribute.MultiWorkerMirroredStrategy()
    tensorflow.distribute.experimental_set_strategy(strategy)
    task = json.loads(os.environ.get(contract.TF_CONFIG) or "{}").get("task", {})
    if task.get("type") == "worker" and task.get("index"):
        for name in ("save", "save_weights"):
            _save_apart(keras.Model, name)


def _save_apart(model: Any, name: str) -> None:
    """Have this worker save elsewhere than the first: both must save, and one model is kept."""
    save = getattr(model, name)

    @functools.wraps(save)
    def apart(self: Any, filepath: Any, *more: Any, **named: Any) -> Any:
        folder = tempfile.mkdtemp(prefix="not-the-first-worker-")
        place = os.path.join(folder, os.path.basename(os.path.normpath(str(filepath))))
        return save(self, place, *more, **named)

    setattr(model, name, apart)
