"""Regular expressions of other people, matched in time that is linear in the text.

Used for placement rules and by the embedded master for offer constraints, where Mesos has RE2, too.
Python's own engine may take longer than the universe for ``(a+)+$``, and nothing can interrupt it.
RE2 is imported by the first pattern: most jobs have none.
"""

from __future__ import annotations

from typing import Any


def compiled(pattern: str) -> Any:
    """Return the compiled pattern, with ``fullmatch`` and ``search``. Raises ValueError.

    What cannot be matched in linear time, such as a look-ahead or a back reference, is no pattern.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        told = error.args[0]
        text = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
        raise ValueError(f"not a regular expression of RE2: {text}") from None
