"""Which arguments a job's code parses, and how parameters are written as such. Pure.

``names`` finds the options in the code; the task runner writes the parameters of a job as arguments
of its script, and the command line says before the start which ones. A parser that is
made of other things cannot be seen, and is left out.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

#: What an option takes: a value; one for each part of a list, behind it or each behind its name; or
#: none, where it stands for true or for false; ``BOTH`` has ``--no-NAME`` beside it; ``ABSL`` takes
#: its truth value behind ``=`` alone.
VALUE, SPREAD, REPEATED = "value", "spread", "repeated"
TRUE, FALSE, BOTH, ABSL = "true", "false", "both", "absl"

#: The words of ``service.parameters_as_arguments``.
AUTO, ALWAYS, NEVER = "auto", "true", "false"

_ARGPARSE = frozenset({"add_argument", "add_option"})
_ACTIONS = {"store_true": TRUE, "store_false": FALSE, "append": REPEATED}
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_NUMBER = re.compile(r"-(\d|\.\d)")
#: A parameter that an argument names; in two pairs of braces it is text.
_NAMED = re.compile(r"\{\{([A-Za-z_][\w.-]*)\}\}|\{([A-Za-z_][\w.-]*)\}", re.ASCII)


def options_in(call: ast.Call) -> Iterator[Tuple[str, str]]:
    """Yield the options that a call defines, as argparse, click and absl have them: name, kind."""
    function = call.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and type(a.value) is str]
    if name in _ARGPARSE:
        for text in texts:
            if text.startswith("--"):
                yield text, _kind_of_argparse(call)
    elif name == "option":
        for text in texts:
            yes, slash, _ = text.partition("/")
            if yes.startswith("--"):
                yield yes, BOTH if slash else _kind_of_click(call)
    elif name.startswith("DEFINE_") and texts:
        yield f"--{texts[0]}", ABSL if name.startswith("DEFINE_bool") else VALUE


def parameters_in(argument: str) -> List[str]:
    """Return the names of the parameters that an argument names in braces."""
    return [name for _, name in _NAMED.findall(argument) if name]


def filled(argument: str, parameters: Mapping[str, Any]) -> str:
    """Return an argument with the values of the parameters that it names: ``{lr}`` is 0.01.

    ``{{lr}}`` is the text ``{lr}``; braces around anything else stay as they are.
    """

    def value(found: "re.Match[str]") -> str:
        text, name = found.groups()
        if text:
            return f"{{{text}}}"
        return _text(parameters[name]) if name in parameters else found.group()

    return _NAMED.sub(value, argument)


def option_of(name: str, options: Mapping[str, str]) -> str:
    """Return the option that a parameter is, ``-`` for ``_`` or not; empty where none is known."""
    spelled = (name, name.replace("_", "-"), name.replace("-", "_"))
    return next((f"--{each}" for each in spelled if f"--{each}" in options), "")


def arguments_of(
    parameters: Mapping[str, Any], options: Mapping[str, str], mode: str, given: Iterable[str] = ()
) -> List[str]:
    """Return parameters as the arguments of a script whose code parses ``options``.

    Those that it is not seen to parse are none, or with ``ALWAYS`` are called as they are. What
    ``given`` has already is left out, and so is what has no value.
    """
    found: List[str] = []
    there = {argument.partition("=")[0] for argument in given}
    for name, value in parameters.items() if mode != NEVER else ():
        option = option_of(name, options)
        if not option and mode == ALWAYS and _NAME.fullmatch(name):
            option = f"--{name}"
        if option and option not in there and value is not None:
            found += _written(option, options.get(option, VALUE), value)
    return found


def _written(option: str, kind: str, value: Any) -> List[str]:
    if kind in (TRUE, FALSE):
        return [option] if bool(value) is (kind == TRUE) else []
    if kind == BOTH:
        return [option if value else f"--no-{option[2:]}"]
    if kind == ABSL:
        return [f"{option}={'true' if value else 'false'}"]
    parts = value if isinstance(value, list) else [value]
    if kind == SPREAD:
        return [option, *map(_text, parts)]
    if kind == REPEATED:
        return [word for part in parts for word in (option, _text(part))]
    text = _text(value)
    joined = text.startswith("-") and not _NUMBER.match(text)
    return [f"{option}={text}"] if joined else [option, text]


def _text(value: Any) -> str:
    """Return a value as SageMaker writes it: True and False, and lists as JSON."""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is bool else json.dumps(value)


def _kind_of_argparse(call: ast.Call) -> str:
    action = _keyword(call, "action")
    if getattr(action, "attr", getattr(action, "id", "")) == "BooleanOptionalAction":
        return BOTH
    if isinstance(action, ast.Constant):
        return _ACTIONS.get(str(action.value), VALUE)
    return VALUE if _keyword(call, "nargs") is None else SPREAD


def _kind_of_click(call: ast.Call) -> str:
    flag, multiple = _keyword(call, "is_flag"), _keyword(call, "multiple")
    if isinstance(flag, ast.Constant) and flag.value:
        return TRUE
    return REPEATED if isinstance(multiple, ast.Constant) and multiple.value else VALUE


def _keyword(call: ast.Call, name: str) -> Optional[ast.expr]:
    found: Dict[Optional[str], ast.expr] = {each.arg: each.value for each in call.keywords}
    return found.get(name)
