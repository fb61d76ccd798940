"""``dcos_tensorflow.report`` as the job's own code has it: each call is a line of PROGRESS_FILE.

This file is a module of the task runner, for code that our wrapper runs. Copied into the sandbox it
is also the whole package ``dcos_tensorflow`` that any Python of the task finds behind its own code
(``reach``). So it imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, Union

#: ``contract.PROGRESS_FILE``, which cannot be imported here; a test compares them.
VARIABLE = "PROGRESS_FILE"


def report(step: Any, **metrics: Any) -> None:
    """Tell how far the training is, with the metrics there: ``report(300, loss=0.21)``.

    ``step`` is a whole number, a metric a number, or what float() makes one of (a scalar of NumPy,
    a tensor). Raises TypeError or ValueError for what is none. Outside of a task it prints the
    line. A disk that is full ends no training: that is told on standard error.
    """
    numbers: Dict[str, Union[int, float]] = {"step": int(step)}
    for name, value in metrics.items():
        numbers[name] = _number(name, value)
    path = os.environ.get(VARIABLE)
    if not path:
        print(", ".join(f"{name} {value:g}" for name, value in numbers.items()), flush=True)
        return
    try:
        # One write at the file's end: processes of the same task do not mix their lines.
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(numbers) + "\n")
    except OSError as error:
        print(f"report: {path} cannot be written: {error}", file=sys.stderr, flush=True)


def _number(name: str, value: Any) -> Union[int, float]:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, (str, bytes)):
        raise TypeError(f"report: {name} must be a number, not {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"report: {name} must be a number: {error}") from None


def _give_way() -> None:
    """Let the whole package take this one's place where it is installed beside TensorFlow."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    ours = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    others = [path for path in sys.path if os.path.realpath(path) != ours]
    spec = PathFinder.find_spec(__name__, others)
    if spec is None or spec.loader is None:
        return
    whole = module_from_spec(spec)
    sys.modules[__name__] = whole
    spec.loader.exec_module(whole)
    # Of a release that has no report yet it is this one.
    vars(whole).setdefault("report", report)


if __name__ == "dcos_tensorflow":
    _give_way()
