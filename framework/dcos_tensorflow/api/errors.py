"""Why a view or a verb has no answer: raised by them, told by ``answering``.

Code that shows a job looks at it through the views, and needs nothing of HTTP.
"""

from __future__ import annotations


class ElementNotFound(LookupError):
    """A view was asked for a plan, pod, endpoint or value that the service does not have."""


class BadRequest(ValueError):
    """The request makes no sense; the text says what is wrong and what would be right."""
