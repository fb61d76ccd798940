"""Numbers and names with their words in agreement: 1 task, 2 tasks; worker-0 waits, both wait.

For every sentence that a person reads; used by all rooms but ``task`` and ``plugin``. Pure.
``tests/unit/core/kept/test_counted.py`` finds sentences that count without it.
"""

from __future__ import annotations

from collections.abc import Collection

#: Verbs whose third person is no more than an s.
_ALONE = {"are": "is", "have": "has", "were": "was", "do": "does", "go": "goes"}
#: How many names a sentence holds; of the others it says how many they are.
NAMES_SAID = 8


def counted(number: float | str, one: str) -> str:
    """Return a number and what there is so much of; ``one`` is the word for a single one."""
    text = _text(number)
    return f"{text} {one if text == '1' else _plural(one)}"


def amount(number: float | str, unit: str) -> str:
    """Return so much of a resource: cpus and gpus are counted, the others are measured."""
    return counted(number, unit) if unit in ("cpu", "gpu") else f"{_text(number)} {unit}"


def listed(names: Collection[str]) -> str:
    """Return names for a sentence: all of a few, the first ones of many."""
    known = tuple(names)
    if len(known) <= NAMES_SAID + 1:
        return ", ".join(known)
    return f"{', '.join(known[:NAMES_SAID])} and {len(known) - NAMES_SAID} more"


def they(names: Collection[str], do: str) -> str:
    """Return names, and what they do: ``do`` is the verb that goes with several of them."""
    return f"{listed(names)} {agreeing(len(names), do)}"


def agreeing(number: int, do: str) -> str:
    """Return a verb as it goes with so many."""
    return _ALONE.get(do, f"{do}s") if number == 1 else do


def _text(number: float | str) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)


def _plural(one: str) -> str:
    if one.endswith("y"):
        return f"{one[:-1]}ies"
    return f"{one}es" if one.endswith(("s", "x", "ch")) else f"{one}s"
