"""The part of ``marathon.json.mustache`` that follows the options: one variable for each.

``python -m dcos_tensorflow.package.template`` writes it between its two marks, with ``--check`` it
only says whether it is up to date. The rest of the template is written by hand.
"""

from __future__ import annotations

import sys

from dcos_tensorflow.options.schema import write_or_check
from dcos_tensorflow.package.variables import option_variables

TEMPLATE = "universe/marathon.json.mustache"
BEGIN = "    {{! Every option: written by python -m dcos_tensorflow.package.template }}\n"
END = "    {{! End of the options }}\n"


def option_lines() -> str:
    """Return the lines of the app's environment for all options.

    One that may be left out is in a section of its own: a zero is true there, as for Cosmos.
    """
    lines = []
    for variable, option in option_variables().items():
        line = f'    "{variable}": "{{{{{option.name}}}}}",'
        if option.nullable:
            line = f"    {{{{#{option.name}}}}}\n{line}\n    {{{{/{option.name}}}}}"
        lines.append(line + "\n")
    return "".join(lines)


def with_options(template: str) -> str:
    """Return ``template`` with its part between the marks written anew. Raises ValueError."""
    before, begin, rest = template.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{TEMPLATE} has no marks for the options")
    return before + begin + option_lines() + end + after


def main(arguments: list[str] | None = None) -> int:
    """Write the template's options, or check them. Return the exit code."""
    return write_or_check("dcos_tensorflow.package.template", {TEMPLATE: with_options}, arguments)


if __name__ == "__main__":
    sys.exit(main())
