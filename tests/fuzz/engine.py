"""Tries one door for a while: by atheris where it is installed, else by chance alone.

atheris (libFuzzer) keeps inputs that reach code no other input reached, and builds on them; its
process ends with the first crash. Without it each input is made of the door's own. Used by
``__main__`` and by the gate, which tries a few.
"""

import hashlib
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from dcos_tensorflow.records import dataclass
from fuzz.doors import DOORS, Door
from fuzz.mutations import mutated

#: An input is kept for further changes with this probability: sequences of changes go far.
_KEEP = 0.05
_MOST_KEPT = 500
#: An input that takes longer (seconds) holds other clients up.
SLOW_SECONDS = 2.0
#: Of what is larger, each further such piece may take as long again: JSON is read in its length.
LARGE_BYTES = 250_000


@dataclass(frozen=True)
class Crash:
    """What an input did."""

    data: bytes
    #: What was raised, and where; the same for inputs that fail alike.
    what: str
    traceback: str


@dataclass(frozen=True)
class Tried:
    """What came of one run."""

    inputs: int
    seconds: float
    #: One for each kind.
    crashes: tuple[Crash, ...]


def crash_of(door: Door, data: bytes) -> Crash | None:
    """Try one input."""
    began = time.process_time()
    try:
        door.enter(data)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
        return Crash(data, f"{type(error).__name__} at {where}", traceback.format_exc())
    took = time.process_time() - began
    if took > SLOW_SECONDS * max(1.0, len(data) / LARGE_BYTES):
        return Crash(data, "slow", f"{took:.1f} s for {len(data)} bytes")
    return None


def by_chance(name: str, seconds: float, seed: int, most_inputs: int = 10**9) -> Tried:
    """Try a door with changed inputs until the time, or the number of inputs, is over."""
    door, random = DOORS[name], Random(seed)
    pool, crashes, kinds = list(door.seeds), [], Counter[str]()
    began, inputs = time.monotonic(), 0
    while inputs < most_inputs and time.monotonic() - began < seconds:
        # What was changed often is refused at once: every other input begins anew.
        first = random.choice(pool if random.random() < 0.5 else door.seeds)
        data = mutated(first, door.seeds, random) if inputs else first
        inputs += 1
        crash = crash_of(door, data)
        if crash is not None:
            kinds[crash.what] += 1
            if kinds[crash.what] == 1:
                crashes.append(crash)
        elif random.random() < _KEEP and len(data) < 100_000:
            if len(pool) >= _MOST_KEPT:
                pool[random.randrange(len(door.seeds), len(pool))] = data
            else:
                pool.append(data)
    return Tried(inputs, time.monotonic() - began, tuple(crashes))


def by_coverage(name: str, seconds: float, folder: Path, seed: int) -> None:
    """Try a door with atheris; it ends the process. Raises ImportError where it is not there.

    What is measured was imported under ``atheris.instrument_imports``. The corpus is kept in
    ``folder``; a crash is written there as ``crash-...``.
    """
    import atheris

    door = DOORS[name]
    corpus = folder / name
    corpus.mkdir(parents=True, exist_ok=True)
    for data in door.seeds:
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)

    def change(data: bytes, most_bytes: int, number: int) -> bytes:
        random = Random(number)
        if random.random() < 0.3:
            return bytes(atheris.Mutate(data, most_bytes))
        return mutated(data, door.seeds, random)[:most_bytes]

    atheris.Setup(
        [
            "fuzz",
            str(corpus),
            f"-max_total_time={int(seconds)}",
            f"-seed={seed}",
            "-max_len=20000",
            "-timeout=20",
            "-print_final_stats=1",
            f"-artifact_prefix={folder}/",
        ],
        door.enter,
        custom_mutator=change,
    )
    atheris.Fuzz()
