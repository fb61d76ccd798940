"""Regular expressions that are compiled when they are used first.

``re.compile`` takes up to a millisecond, and most of what a module looks for is not needed in most
processes: a command imports some hundred of them, a task's runner fifty. The task runner comes with
it, on any Python from 3.8.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Union

__all__ = ["pattern"]


class _Pattern:
    """Has all that a compiled one has."""

    def __init__(self, text: Union[str, bytes], flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        """Return a part of the compiled one, and keep it: the next look does not come here."""
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    from re import compile as pattern
else:

    def pattern(text: Union[str, bytes], flags: int = 0) -> _Pattern:
        """Return a regular expression that is compiled when it is used first."""
        return _Pattern(text, flags)
