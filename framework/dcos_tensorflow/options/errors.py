"""The mistakes in a user's options, as values and as text.

Made by every module of this room, shown by the CLI, the HTTP API and the scheduler's log. Nothing
here reads options; a value that is secret must be hidden before it gets here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.records import dataclass

#: Stands for a secret wherever options are shown.
HIDDEN = "********"

_SECRET_WORDS = ("credential", "password", "secret", "token")


def is_secret(variable: str) -> bool:
    """Say whether an environment variable's name tells of a secret, as the SDK reckons."""
    return any(word in variable.lower() for word in _SECRET_WORDS)


@dataclass(frozen=True)
class OptionProblem:
    """One thing that is wrong.

    ``path`` is the option's dotted path, or empty for the document as a whole. ``message`` is what
    is wrong, ``given`` what stands there now, ``allowed`` what may stand there, ``suggestion`` the
    nearest thing that would be right. Any of the last three may be empty.
    """

    path: str
    message: str
    given: str = ""
    allowed: str = ""
    suggestion: str = ""

    def document(self) -> dict[str, str]:
        """Return it as JSON, without a suggestion where there is none."""
        return {name: said for name, said in asdict(self).items() if said or name != "suggestion"}

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        if self.suggestion:
            text += f"; did you mean {self.suggestion}?"
        details = [
            f"{label} {value}"
            for label, value in (("given:", self.given), ("allowed:", self.allowed))
            if value
        ]
        line = f"{text} ({'; '.join(details)})" if details else text
        # Names and values come from a file: nothing in them may start a line or colour a terminal.
        return "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode() for char in line
        )


@dataclass(frozen=True)
class Finding:
    """Something wrong at ``path``. ``looked_at`` are the dotted paths the rule depends on."""

    path: str
    message: str
    allowed: str = ""
    looked_at: tuple[str, ...] = ()
    given: str | None = None


class OptionsError(Exception):
    """Options that cannot be used, with everything that is wrong with them.

    ``problems`` stand in the order of the file; ``source`` names it, or is empty.
    """

    def __init__(self, problems: Iterable[OptionProblem], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        super().__init__(self.problems, source)

    def __str__(self) -> str:
        count = len(self.problems)
        heading = counted(count, "problem")
        place = f"{heading} in {self.source}" if self.source else f"{heading} in the options"
        return "\n".join([f"{place}:", *(f"  {problem}" for problem in self.problems)])


def one_sentence(problem: Exception) -> str:
    """Return why options cannot be had, to stand in a plan and behind other words."""
    if isinstance(problem, OptionsError):
        return "; ".join(map(str, problem.problems))
    return str(problem).rstrip(".")
