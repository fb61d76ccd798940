"""What lies between the master and its agents: cut links, agents that stand still, late updates.

``cluster`` consults it for every message that it carries; ``faults`` sets it. Pure bookkeeping,
used under the cluster's lock.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

from dcos_tensorflow.local import messages

#: Seconds of delay for each delivery of a message: () is lost, (0,) is as usual.
Fate = tuple[float, ...]


@dataclass
class UpdateRule:
    """What becomes of the next ``left`` updates that match; None matches everything."""

    task_id: str | None
    state: str | None
    left: int
    fate: Fate

    def matches(self, message: messages.StatusUpdate) -> bool:
        """Say whether the rule is for this update."""
        status = message.status
        return (
            self.left > 0
            and self.task_id in (None, status["task_id"]["value"])
            and self.state in (None, status["state"])
        )


class Network:
    """See the module. Agents are named by their place in the cluster's configuration."""

    def __init__(self, agents: int) -> None:
        self._cut = [False] * agents
        self._held: list[list[tuple[str, object]] | None] = [None] * agents
        self._tasks_frozen = [False] * agents
        self._rules: list[UpdateRule] = []
        self._later: list[tuple[float, int, int, object]] = []
        self._order = itertools.count()

    def reaches(self, link: int) -> bool:
        """Say whether messages pass between the master and an agent."""
        return not self._cut[link]

    def frozen(self, link: int) -> bool:
        """Say whether an agent stands still."""
        return self._held[link] is not None

    def tasks_frozen(self, link: int) -> bool:
        """Say whether the tasks of an agent stand still, too."""
        return self._tasks_frozen[link]

    def hold_for_agent(self, link: int, item: tuple[str, object]) -> bool:
        """Keep what comes for a frozen agent; say whether it was kept."""
        held = self._held[link]
        if held is not None:
            held.append(item)
        return held is not None

    def freeze(self, link: int, *, tasks: bool = False) -> None:
        """Let an agent stand still."""
        self._tasks_frozen[link] = self._tasks_frozen[link] or tasks
        if self._held[link] is None:
            self._held[link] = []

    def thaw(self, link: int) -> list[tuple[str, object]]:
        """Let it go on; return what came meanwhile."""
        held = self._held[link] or []
        self._held[link] = None
        self._tasks_frozen[link] = False
        return held

    def cut(self, link: int, cut: bool) -> None:
        """Let nothing pass, or let everything pass again."""
        self._cut[link] = cut

    def add_rule(self, rule: UpdateRule) -> None:
        """Decide the fate of updates to come."""
        self._rules.append(rule)

    def on_the_way(self, link: int, message: object) -> Fate:
        """Return the fate of an agent's message."""
        if self._cut[link]:
            return ()
        if isinstance(message, messages.StatusUpdate):
            for rule in self._rules:
                if rule.matches(message):
                    rule.left -= 1
                    return rule.fate
        return (0.0,)

    def later(self, at: float, link: int, message: object) -> None:
        """Deliver a message to the master at ``at``."""
        heapq.heappush(self._later, (at, next(self._order), link, message))

    def due(self, now: float) -> list[tuple[int, object]]:
        """Return the delayed messages whose time has come."""
        found = []
        while self._later and self._later[0][0] <= now:
            _, _, link, message = heapq.heappop(self._later)
            if not self._cut[link]:
                found.append((link, message))
        return found

    def deadline(self) -> float:
        """Return when the next delayed message is due."""
        return self._later[0][0] if self._later else float("inf")
