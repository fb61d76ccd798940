"""The option by which the package serves a queue of teams in place of a job. Pure.

What it holds is checked where a queue is served (``queue_service.teams_file``).
"""

from __future__ import annotations

from pydantic import Field

from dcos_tensorflow.options.sections.section import Section
from dcos_tensorflow.options.sections.values import ObjectText


class Queue(Section):
    """A queue of teams that the package serves."""

    teams: ObjectText = Field(
        "",
        title="Teams",
        description="JSON text of what the file of queue serve holds: teams, and rules. The "
        "package then serves a queue in place of a job, and of the other options only those of "
        "service about the name, the user, the account and the log count. Empty: a job.",
    )
