"""The behaviour of a market since the job began: how long so many spot machines stay.

Called by ``deadline``. It is known of two things how long they have stayed so far:

* *Level* n is there while n machines or more can be had.
* *Margin* m is there until more than m machines have gone, from the most that there were since that
  happened last. A gang that leaves m machines in the market loses none until then.

A level that machines far above it have shielded says little of the time after them, and
margins say nothing of machines that always stay; so both are asked. Nothing is forecast: each is
taken to stay for as long as it has stayed, on average or this time, with a small assumption
for times that were not seen yet.
"""

from __future__ import annotations

import math
from dataclasses import field, replace

from dcos_tensorflow.records import dataclass

HOUR = 3600.0


@dataclass(frozen=True)
class Level:
    """How long something has stayed: so many machines, or a margin."""

    #: When it came, if it is there now; seconds on the caller's clock.
    since: float | None = None
    #: How long it was there before that; seconds.
    past: float = 0.0
    #: How often it has ended.
    ends: int = 0

    def seen(self, now: float, there: bool) -> Level:
        """Return the same after a look at the market."""
        if there == (self.since is not None):
            return self
        if self.since is None:
            return replace(self, since=now)
        return Level(past=self.past + now - self.since, ends=self.ends + 1)

    def age(self, now: float) -> float:
        """Return for how many seconds it has been there this time."""
        return 0.0 if self.since is None else now - self.since

    def life(self, now: float, guess: float) -> float:
        """Return for how many seconds more it is taken to stay; ``guess`` before all is known.

        What has stayed for long stays (most windows are short, most of the time lies in long
        ones).
        """
        age = self.age(now)
        return max((guess + self.past + age) / (1 + self.ends), age)


@dataclass(frozen=True)
class Margin:
    """What is known of so many machines that are left in the market."""

    #: The most machines that there were since the margin was lost.
    top: int = 0
    #: How long it has stayed, while there was a machine above it.
    stay: Level = field(default_factory=Level)

    def seen(self, now: float, available: int, left: int) -> Margin:
        """Return the same after a look at the market; ``left`` is how many the margin has."""
        top, stay = max(self.top, available), self.stay
        if available < top - left:
            top, stay = available, stay.seen(now, False)
        return Margin(top, stay.seen(now, top > left))


@dataclass(frozen=True)
class Experience:
    """All levels of one market, beginning with one machine, and all margins, with none."""

    #: When the first look was taken; seconds on the caller's clock.
    began: float
    #: How many machines could be had at the last look.
    available: int
    levels: tuple[Level, ...]
    margins: tuple[Margin, ...]

    @staticmethod
    def first(now: float, available: int, machines: int) -> Experience:
        """Begin with a first look; levels above ``machines`` do not matter."""
        nothing = Experience(now, 0, (Level(),) * machines, (Margin(),) * machines)
        return nothing.seen(now, available)

    def seen(self, now: float, available: int) -> Experience:
        """Return the same after one more look."""
        if available == self.available:
            return self
        levels = tuple(
            level.seen(now, number <= available) for number, level in enumerate(self.levels, 1)
        )
        margins = tuple(
            margin.seen(now, available, left) for left, margin in enumerate(self.margins)
        )
        return replace(self, available=available, levels=levels, margins=margins)

    def life(self, level: int, now: float) -> float:
        """Return for how many seconds more a level that is there is taken to stay.

        It is the geometric mean of what level and margin say. Before anything is known, machines
        go one by one, each after an hour.
        """
        left = min(max(0, self.available - level), len(self.margins) - 1)
        by_margin = sum(HOUR / machine for machine in range(level, level + left + 1))
        said = self.levels[level - 1].life(now, HOUR / level)
        return math.sqrt(said * self.margins[left].stay.life(now, by_margin))

    def share(self, level: int, now: float) -> float:
        """Return the share of time with this level; before anything is known, all are as likely."""
        known = self.levels[level - 1]
        guess = 1.0 - level / (len(self.levels) + 1)
        return (HOUR * guess + known.past + known.age(now)) / (HOUR + now - self.began)
