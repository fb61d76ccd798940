"""``--sweep``, ``--trials`` and ``--metric`` of a script, as the section ``sweep`` of its options.

``cli.flags`` calls it. The options check the ranges: here flags become the entries of a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.core.spec.workload_spec import Goal

#: What is said for a kind of ``sweep.parameters`` that has a longer name there.
_SHORT = {"log": "log_uniform"}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"([A-Za-z_]\w*)((?::{_NUMBER})+)", re.ASCII)
_NO_KIND = re.compile(rf"{_NUMBER}(?::{_NUMBER})+", re.ASCII)
_CONSTANTS = {"true": True, "false": False, "null": None}
#: Numbers of which less is better, by a word of their names or its end.
_LESS_IS_BETTER = re.compile(
    r"loss|error|err|mae|mse|rmse|mape|smape|msle|rmsle|nll|wer|cer|perplexity|divergence", re.ASCII
)


def sweep_of(
    parameters: Sequence[str], trials: int | None, metric: str | None
) -> dict[str, Any] | None:
    """Return the section that flags ask for; None where there is none. Raises UsageError.

    ``parameters`` are texts such as ``lr=log:1e-4:1e-1`` and ``optimizer=adam,sgd``.
    """
    if not parameters:
        said = "--trials" if trials is not None else "--metric" if metric is not None else ""
        if said:
            raise UsageError(f"{said} is for a search; name its parameters with --sweep NAME=...")
        return None
    if metric is None:
        raise UsageError(
            "--sweep needs --metric NAME: the number that says how good a trial is, as the script"
            " tells it, such as val_accuracy."
        )
    found: dict[str, Any] = {}
    for text in parameters:
        name, equals, told = text.partition("=")
        if not equals or not name or not told:
            raise UsageError(
                f"--sweep {text} is none: it is NAME=VALUE,VALUE,... or NAME=KIND:LEAST:MOST, such"
                " as lr=log:1e-4:1e-1, units=int:16:256 or optimizer=adam,sgd."
            )
        if name in found:
            raise UsageError(f"--sweep {name}=... is given more than once.")
        found[name] = _parameter(name, told)
    section: dict[str, Any] = {"parameters": found}
    section["objective"] = {"metric": metric, "goal": str(goal_of(metric))}
    return section if trials is None else {**section, "max_trials": trials}


def goal_of(metric: str) -> Goal:
    """Return whether more or less of a number is better, by its name."""
    words = re.split(r"[^a-z]+", metric.lower())
    less = any(
        _LESS_IS_BETTER.fullmatch(word) or word.endswith(("loss", "error")) for word in words
    )
    return Goal.MINIMIZE if less else Goal.MAXIMIZE


def _parameter(name: str, told: str) -> Any:
    if told[0] in "[{":
        try:
            return json.loads(told)
        except ValueError as error:
            raise UsageError(
                f"--sweep {name}={told} begins as JSON, and is none: {error}."
            ) from None
    if ranged := _RANGE.fullmatch(told):
        kind, numbers = ranged.groups()
        return {_SHORT.get(kind, kind): [_value(number) for number in numbers[1:].split(":")]}
    if _NO_KIND.fullmatch(told):
        raise UsageError(
            f"--sweep {name}={told} needs a kind in front: uniform:{told}, log:{told}, int:{told};"
            " docs/sweeps.md has all."
        )
    return [_value(each) for each in told.split(",")]


def _value(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if not re.fullmatch(_NUMBER, text, re.ASCII):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
