"""The arguments of ``TensorFlow`` and ``fit`` to the options of a job. Pure.

``deploy.job.script_job`` makes options of the flags of a command line; this module has the
arguments that only Python has: hyperparameters, inputs, and options that are laid over all others.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.core import contract, job_parameters
from untrusted_input.json_text import read_json

Options = Mapping[str, Any]


def by_name(argument: str, given: Any) -> dict[str, Any]:
    """Return a copy of what was given by names, empty for nothing. Raises UsageError."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise UsageError(f"{argument} is a dict whose keys are names, not {given!r}.")
    return dict(given)


def words(argument: str, given: Any) -> tuple[str, ...]:
    """Return a list of texts and numbers as texts. Raises UsageError."""
    if not isinstance(given, list | tuple):
        raise UsageError(f"{argument} is a list, such as ['--epochs', '3'], not {given!r}.")
    return tuple(map(str, given))


def plain_values(argument: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON has them, scalars of NumPy among them. Raises UsageError."""
    return {name: _plain(f"{argument}.{name}", value) for name, value in given.items()}


def with_hyperparameters(options: Options, hyperparameters: Mapping[str, Any]) -> Options:
    """Return the options with hyperparameters in JOB_CONTEXT and as PARAM_* variables.

    Raises UsageError for what JSON cannot say, and for two names of the same variable.
    """
    if not hyperparameters:
        return options
    plain = plain_values("hyperparameters", hyperparameters)
    _check_names("hyperparameters", plain, job_parameters.variable)
    service = {"job_context": json.dumps(plain), "env": job_parameters.variables(plain)}
    return laid_over(options, {"service": service})


def with_inputs(options: Options, inputs: Mapping[str, str | Path], folder: Path) -> Options:
    """Return the options with ``data`` for each input, and the variable that says where it is.

    The input ``train`` is the directory ``input/train`` of the sandbox, and INPUT_TRAIN its name.
    ``folder`` is where relative paths of the options start; those of inputs start where this
    process does. Raises UsageError.
    """
    if not inputs:
        return options
    for name in inputs:
        if not re.fullmatch(r"[A-Za-z][\w-]*", name, flags=re.ASCII):
            raise UsageError(
                f"inputs: {name!r} is no name of an input: allowed are letters, digits, _ and -."
            )
    _check_names("inputs", inputs, _input_variable)
    data = [
        {
            "uri": place_of(f"inputs.{name}", place, folder),
            "path": f"{contract.INPUT_FOLDER}/{name}",
        }
        for name, place in inputs.items()
    ]
    variables = {_input_variable(name): f"{contract.INPUT_FOLDER}/{name}" for name in inputs}
    known = options.get("data", [])
    more = known if isinstance(known, list) else [known]
    return {**laid_over({"service": {"env": variables}}, options), "data": [*data, *more]}


def pieces(inputs: Any, folder: Path) -> dict[str, Any]:
    """Return the inputs of a batch as options; relative paths start where this process does.

    Raises UsageError.
    """
    if isinstance(inputs, range):
        return {"range": [inputs.start, inputs.stop, inputs.step]}
    if isinstance(inputs, str | Path):
        is_prefix = str(inputs).startswith("s3://")
        inputs = {"s3_prefix" if is_prefix else "files": inputs}
    found = by_name("inputs", inputs)
    for name in ("manifest", "files"):
        if name in found:
            found[name] = place_of(f"inputs.{name}", found[name], folder)
    return found


def laid_over(below: Options, above: Options, *path: str) -> dict[str, Any]:
    """Return the options with those ``above`` laid over them; ``path`` leads to both of them.

    JSON texts of objects, ``service.job_context`` and an ``env``, are laid over each other, too.
    """
    found = dict(below)
    for name, value in above.items():
        found[name] = _over(found[name], value, *path, name) if name in found else value
    return found


def _over(below: Any, above: Any, *path: str) -> Any:
    is_text = path == ("service", "job_context")
    if is_text or path[-1] == "env":
        one, other = _object(below), _object(above)
        if one is None or other is None:
            # What is wrong with it is told with all other options.
            return above
        return json.dumps({**one, **other}) if is_text else {**one, **other}
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        return laid_over(below, above, *path)
    return above


def _object(value: Any) -> Mapping[str, Any] | None:
    """Return an object that may be written as JSON text; None for anything else."""
    if isinstance(value, str):
        try:
            value = read_json(value.strip() or "{}")
        except ValueError:
            return None
    return value if isinstance(value, Mapping) else None


def _plain(name: str, value: Any) -> Any:
    try:
        return read_json(json.dumps(value, default=lambda one: one.item(), allow_nan=False))
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise UsageError(
            f"{name}: {value!r} cannot be handed to a job: allowed is what JSON can say."
        ) from None


def _check_names(option: str, names: Iterable[str], variable: Callable[[str], str]) -> None:
    """Raise UsageError where two names would be the same variable."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(variable(name), name)
        if other != name:
            raise UsageError(f"{option}: {other} and {name} are both {variable(name)} to the code.")


def _input_variable(name: str) -> str:
    return contract.INPUT_PREFIX + name.replace("-", "_").upper()


def place_of(argument: str, place: Any, folder: Path) -> str:
    """Return a URL, or a path of this process as one that starts at ``folder``.

    Raises UsageError for what is neither.
    """
    if not isinstance(place, str | Path):
        raise UsageError(f"{argument} is a path or s3://bucket/prefix, not {place!r}.")
    text = str(place)
    if "://" in text or text.startswith("~"):
        return text
    if not text:
        raise UsageError(f"{argument} is empty; name a file, a folder, or s3://bucket/prefix.")
    if os.path.isabs(text):
        return text
    beside = os.path.relpath(os.path.abspath(text), folder)
    found = beside if beside.startswith(os.pardir) else os.path.join(os.curdir, beside)
    # By that a folder for output is known.
    return f"{found}/" if text.endswith("/") else found
