"""Lets a TensorFlow 1 script run unedited on TensorFlow 2 (``service.tf1_compat``).

``wrapper`` installs it in the user's process before the user's code is imported. Afterwards
``import tensorflow`` gives the TensorFlow 1 interface; ``tensorflow.compat.v1``, ``.v2`` and
``tensorflow.python`` stay as they are. ``tf.contrib`` is gone from TensorFlow 2 for good.
"""

from __future__ import annotations

import importlib
import sys
import types
from contextlib import contextmanager
from typing import Any, Iterator, List


def install() -> None:
    """Put the TensorFlow 1 interface in the place of ``tensorflow``, with its behaviour."""
    tensorflow = importlib.import_module("tensorflow")
    if isinstance(tensorflow, _TensorFlow1):
        return
    tensorflow.compat.v1.disable_v2_behavior()
    sys.modules["tensorflow"] = _TensorFlow1(tensorflow)


class _TensorFlow1(types.ModuleType):
    """A module ``tensorflow`` with the names of ``tensorflow.compat.v1``.

    Not that module itself: its own ``compat`` knows only a part, and its ``__path__`` would not
    find submodules such as ``tensorflow.python.framework``.
    """

    def __init__(self, real: Any) -> None:
        super().__init__("tensorflow", real.__doc__)
        self._real = real
        self.__path__ = real.__path__
        self.__spec__ = real.__spec__
        self.__file__ = real.__file__
        self.__version__ = real.__version__
        self.compat = real.compat

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with _real_tensorflow(self._real):
            try:
                value = getattr(self._real.compat.v1, name)
            except AttributeError:
                value = sys.modules.get(f"tensorflow.{name}")
                if value is None:
                    raise AttributeError(f"module 'tensorflow' has no attribute {name!r}") from None
            if isinstance(value, types.ModuleType):
                # Keras and its like load when first looked at, and then import tensorflow.
                dir(value)
        setattr(self, name, value)
        return value

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *dir(self._real.compat.v1)})


@contextmanager
def _real_tensorflow(real: Any) -> Iterator[None]:
    """Let what is imported inside see the real ``tensorflow``."""
    shown = sys.modules["tensorflow"]
    sys.modules["tensorflow"] = real
    try:
        yield
    finally:
        sys.modules["tensorflow"] = shown
