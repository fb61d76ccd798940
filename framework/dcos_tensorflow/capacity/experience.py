"""What a market has shown since the job began: how long so many spot machines stay.

Called by ``deadline``. *Level* n is there while n machines or more can be had. Nothing is forecast:
a level is taken to stay for as long as it has stayed so far, on average or this time, and a little
is assumed of one that nobody has seen yet.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.records import dataclass

HOUR = 3600.0


@dataclass(frozen=True)
class Level:
    """What is known of one number of machines."""

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


@dataclass(frozen=True)
class Experience:
    """All levels of one market, beginning with one machine."""

    #: When the first look was taken; seconds on the caller's clock.
    began: float
    #: How many machines could be had at the last look.
    available: int
    levels: tuple[Level, ...]

    @staticmethod
    def first(now: float, available: int, machines: int) -> Experience:
        """Begin with a first look; levels above ``machines`` matter to nobody."""
        return Experience(now, 0, (Level(),) * machines).seen(now, available)

    def seen(self, now: float, available: int) -> Experience:
        """Return the same after one more look."""
        if available == self.available:
            return self
        levels = tuple(
            level.seen(now, number <= available) for number, level in enumerate(self.levels, 1)
        )
        return replace(self, available=available, levels=levels)

    def life(self, level: int, now: float) -> float:
        """Return for how many seconds more a level that is there is taken to stay.

        Before anything is known, an hour for one machine, half of it for two: they go one by one
        until something else is seen. What has stayed for long stays (most windows are short, most
        of the time lies in long ones).
        """
        known = self.levels[level - 1]
        age = known.age(now)
        average = (HOUR / level + known.past + age) / (1 + known.ends)
        return max(average, age)

    def share(self, level: int, now: float) -> float:
        """Return the share of time with this level; before anything is known, all are as likely."""
        known = self.levels[level - 1]
        guess = 1.0 - level / (len(self.levels) + 1)
        return (HOUR * guess + known.past + known.age(now)) / (HOUR + now - self.began)
