"""Words agree with their numbers, in every sentence that counts something."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dcos_tensorflow
from dcos_tensorflow.core.counted import agreeing, amount, counted, listed, they
from dcos_tensorflow.core.restarts.restarts import all_run


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (counted(1, "task"), "1 task"),
        (counted(2, "task"), "2 tasks"),
        (counted(0, "task"), "0 tasks"),
        (counted(1.0, "cpu"), "1 cpu"),
        (counted(0.5, "cpu"), "0.5 cpus"),
        (counted(1_000_000, "offer"), "1000000 offers"),
        (counted("1", "gpu"), "1 gpu"),
        (counted(3, "retry"), "3 retries"),
        (amount(1, "MB mem"), "1 MB mem"),
        (amount(2.0, "cpu"), "2 cpus"),
        (they(["worker-0"], "wait"), "worker-0 waits"),
        (they(["worker-0"], "are"), "worker-0 is"),
        (they(["ps-0", "worker-0"], "start"), "ps-0, worker-0 start"),
        (agreeing(1, "go"), "goes"),
        (listed("abcdefghijkl"), "a, b, c, d, e, f, g, h and 4 more"),
        (all_run(1), "the gang's only task runs"),
        (all_run(2), "all 2 tasks of the gang run"),
    ],
)
def test_words_agree_with_their_number(text: str, told: str) -> None:
    assert text == told


#: What is counted in sentences that people read.
_THINGS = (
    "agents|chiefs|containers|cpus|files|gpus|incidents|machines|members|problems|processes"
    "|redirects|restarts|retries|services|tasks|workers"
)
_COUNTED_BY_HAND = re.compile(rf"^ (?:[a-z]+ )?(?:{_THINGS})\b")
#: Rooms that cannot use ``counted``.
_APART = ("task/", "plugin/")
#: Sentences that are said of several only.
_ALWAYS_SEVERAL = {
    "core/cluster/rendering.py": "chiefs",  # {chiefs} chiefs are wanted
    "core/restarts/restarts.py": "tasks",  # all {count} tasks of the gang run
    "core/offers/launching.py": "tasks",
    "job_code/agreement.py": "tasks",  # each of the {count} tasks does all of the work
    # {why} workers; the addresses of {members} members do not fit
    "options/cross_checks.py": ("workers", "members"),
    "core/operator/requests.py": "tasks",  # {role} tasks cannot be changed
    "core/agents/avoidance.py": "tasks",  # {hostname} failed tasks of this job
}


def sentences() -> Iterator[tuple[str, str]]:
    """Yield file and what follows a value, of every text that is put together."""
    root = Path(dcos_tensorflow.__file__).parent
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root).as_posix()
        if file.startswith(_APART):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                for value, text in zip(node.values, node.values[1:], strict=False):
                    if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                        yield file, str(text.value)


def test_no_sentence_counts_by_hand() -> None:
    found = [
        (file, text)
        for file, text in sentences()
        if (said := _COUNTED_BY_HAND.match(text))
        and not said.group().endswith(_ALWAYS_SEVERAL.get(file, "-"))
    ]
    assert found == []
