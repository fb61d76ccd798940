"""What a run is made of: ticks, and what one of them says when it is not as it should be.

``sends`` and ``expects`` make them, ``runner`` plays them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from service_runner.service import Service, name_of


class Unmet(Exception):
    """What a tick wants cannot be, or is not so. The text says what is."""


@dataclass(frozen=True)
class Tick:
    """One line of a run. ``sends`` says that something happens to the scheduler."""

    text: str
    sends: bool
    act: Callable[[Service], None]


def listed(names: object) -> str:
    found = ", ".join(sorted(map(str, names)))  # type: ignore[call-overload]
    return found or "none"


def quoted(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))


def live(service: Service, task: str) -> str:
    alive = [task_id for task_id in service.cluster.alive() if name_of(task_id) == task]
    if not alive:
        raise Unmet(
            f"{task} does not run; there run {listed(map(name_of, service.cluster.alive()))}"
        )
    return service.cluster.id_of(task)
