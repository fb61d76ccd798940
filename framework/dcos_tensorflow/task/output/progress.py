"""How far the training is: read from the lines a job prints and from its progress file.

``runner`` feeds it every line of the user's output and the new lines of ``PROGRESS_FILE``; the
newest value wins. The steps of event files count where a job tells none itself. Pure: the time is
given. docs/job-contract.md lists the lines that it understands.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import field, replace
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.output.error_texts import is_of_an_error

#: Longer lines are data, not progress.
MAX_LINE = 4000
#: A result is passed on by several programs: deeper ones are none, and larger numbers no counts.
MAX_DEPTH = 20
MAX_COUNT = 2**63 - 1
#: More metrics, and longer names, are passed over: each report carries all of them.
MAX_METRICS = contract.MOST_METRICS
MAX_NAME = contract.METRIC_NAME_LENGTH

#: "loss inf" is a number, and "loss information" is none.
_NOT_FINITE = r"(?i:nan|inf(?:inity)?)\b(?![\w-])"
_NUMBER = rf"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|{_NOT_FINITE}))"
_IS = r"""["']?\s*[:=]?\s*"""
#: "Step 5 cancelled" is TensorFlow's own, and none of the training (``contract.MOST_STEPS``).
_STEP = re.compile(
    rf"(?<![\w/.])(?:global[_ ])?steps?{_IS}#?\s*(\d+)(?![\d.]*\s*%)\b(?!\.\d|\s+cancel)",
    re.IGNORECASE,
)
#: Of which examples a number is, where that is said: "Test loss" is none of the training.
_EXAMPLES = r"(?:(?P<of>test|val(?:id(?:ation)?)?|eval(?:uation)?|dev)[_ ]|train(?:ing)?[_ ])?"
_LOSS = re.compile(rf"(?<![\w/.]){_EXAMPLES}loss{_IS}{_NUMBER}", re.IGNORECASE)
_ACCURACY = re.compile(
    rf"(?<![\w/.]){_EXAMPLES}(?:sparse_)?(?:categorical_|binary_)?acc(?:uracy)?{_IS}"
    rf"{_NUMBER}(?P<percent>\s*%)?",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"^\s*Epoch\s+(\d+)\s*/\s*(\d+)\b")
_BATCH = re.compile(r"^\s*(\d+)/(\d+)\b.*\b(?:loss|step)\b")
_RESULT = re.compile(r"(?:^|\s)result:?\s*(\{.*\})\s*$", re.IGNORECASE)
#: What a line has in it that tells anything, in small letters: most lines of most jobs have none.
_TELLING = (
    *(b"step", b"loss", b"acc", b"epoch", b"result", b"val_", b"auc", b"score", b"error"),
    *(b"mae", b"mse", b"metric", b"reward", b"perplexity"),
)
_WORTH_A_LOOK = re.compile(b"|".join(_TELLING).decode(), re.IGNORECASE)
#: Of more lines than may be looked at, so many that have each word.
_NEWEST = 2
#: What of a record has a place of its own.
_NAMED = frozenset({"step", "global_step", "loss", "accuracy", "epoch", "epochs"})
#: A number with its name: "val_loss: 0.3", "auc=0.9". What stands before a place in code or a time
#: is none.
_PAIR = re.compile(
    rf"(?:^|(?<=[\s,(\[|]))([A-Za-z_][\w/.-]{{0,{MAX_NAME - 1}}})(?:: |\s?=\s?){_NUMBER}"
    r"(?=$|[\s,)\]|])"
)
#: A line of nothing but such pairs may have blanks alone between them: "step 3 loss 0.2 auc 0.9".
_PLAIN_PAIR = re.compile(rf"([A-Za-z_][\w/.-]{{0,{MAX_NAME - 1}}})[:=]? {_NUMBER}(?:[,;] ?| |$)")
_BLANKS = re.compile(r"\s+")
#: A line of code, or how Python shows an object: ``Namespace(steps=60, lr=0.5)``.
_CALL = re.compile(r"\s*[A-Za-z_][\w.]*\([^()]*=.*\)\s*")
#: How the numbers of a bar of ``evaluate`` begin.
_EVALUATION = "eval"
_TERMINAL_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x08")
#: A step, None where the job told none by then, and the value that a metric had there.
_Told = Tuple[Optional[int], float]


@dataclass(frozen=True)
class Progress:
    """The newest known numbers; None where the job has not said any. ``at`` is unix seconds.

    ``start_step`` is the newest step of the present start alone, ``start_steps`` how often it was
    another one than before; ``told`` says that the job itself tells its steps.
    """

    step: Optional[int] = None
    loss: Optional[float] = None
    accuracy: Optional[float] = None
    epoch: Optional[int] = None
    epochs: Optional[int] = None
    at: Optional[float] = None
    result: Optional[Mapping[str, Any]] = None
    start_step: Optional[int] = None
    start_steps: int = 0
    told: bool = False
    #: How many batches the epoch has, by its bar; 0 before that.
    batches: int = 0
    #: What else the job has told by name, in its progress file or in a line with other numbers.
    metrics: Mapping[str, float] = field(default_factory=dict)
    #: The metrics of the newest line that has told any, loss and accuracy among them.
    newest: Mapping[str, float] = field(default_factory=dict)
    #: Names of the metrics that the job itself has told: its event files' are passed over.
    named: FrozenSet[str] = frozenset()
    #: The step at which each metric was told last, by name.
    told_at: Mapping[str, int] = field(default_factory=dict)
    #: The least and the most finite value that was told of each metric, by name.
    extremes: Mapping[str, Tuple[_Told, _Told]] = field(default_factory=dict)

    def as_json(self) -> Mapping[str, Any]:
        """Return what ``GET /v1/status`` shows under ``progress``."""
        return {
            "step": self.step,
            "loss": plain(self.loss),
            "accuracy": plain(self.accuracy),
            "epoch": self.epoch,
            "epochs": self.epochs,
            "metrics": plain(self.metrics),
            "at": self.at,
            # Of those that are not of the newest step, as an evaluation between epochs is not.
            "told_at": {name: at for name, at in self.told_at.items() if at != self.step},
            # A report carries what is newest: what came and went between two of them.
            "extremes": {
                name: values
                for name, both in self.extremes.items()
                if (values := [list(one) for one in both if one[0] != self.step])
            },
        }


def plain(value: Any) -> Any:
    """Return a value of JSON where a float that is not finite is its name (``NOT_FINITE``)."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


def number(value: object) -> Optional[float]:
    """Return what was told as a number, which may be the name of one; None for what is none."""
    if isinstance(value, str):
        return float(value) if value in contract.NOT_FINITE else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def begin_start(progress: Progress) -> Progress:
    """Return the progress as another start begins: what is known stays until it says more."""
    return replace(progress, start_step=None, start_steps=0, told=False)


def known_before(metrics: object, result: object) -> Progress:
    """Return the progress as another attempt begins of what has told these; none is passed over."""
    told = metrics if isinstance(metrics, dict) else {}
    numbers = {name: value for name, given in told.items() if (value := number(given)) is not None}
    known = Progress(
        loss=numbers.pop("loss", None), accuracy=numbers.pop("accuracy", None), metrics=numbers
    )
    return _with_result(known, result, None) if isinstance(result, dict) and result else known


def numbers_of(progress: Progress) -> Dict[str, float]:
    """Return all metrics by their names, loss and accuracy among them."""
    told = {"loss": progress.loss, "accuracy": progress.accuracy}
    known = {name: value for name, value in told.items() if value is not None}
    return {**known, **progress.metrics}


def read_event_step(progress: Progress, step: Optional[int], now: float) -> Progress:
    """Return the progress after a look at the event files, whose newest step is ``step``."""
    step = _steps(step)
    if step is None or progress.told or step == progress.start_step:
        return progress
    return replace(_with_step(progress, step), at=now)


def read_scalar(progress: Progress, name: str, value: float, now: float) -> Progress:
    """Return the progress after a scalar of the event files."""
    known = progress.metrics
    if name in progress.named or len(name) > MAX_NAME:
        return progress
    if name not in (*known, "loss", "accuracy") and len(known) >= MAX_METRICS:
        return progress
    progress = replace(progress, at=now, told_at=_told_now(progress, (name,)))
    progress = _with_extremes(progress, {name: value})
    if name == "loss":
        return replace(progress, loss=value)
    if name == "accuracy":
        return replace(progress, accuracy=value)
    return replace(progress, metrics={**known, name: value})


def telling_lines(block: bytes, most: int) -> List[str]:
    """Return the lines of a block that may tell something, oldest first.

    Of more than ``most`` the newest, so that the newest of each kind of number is among them. A
    block's lines all end with a line break; those without such a word cost next to nothing.
    """
    small = block.lower()
    counts = {word: number for word in _TELLING if (number := small.count(word))}
    each = max(most if sum(counts.values()) <= most else 0, _NEWEST)
    begins = set()
    for word in counts:
        end = len(small)
        for _ in range(each):
            at = small.rfind(word, 0, end)
            if at < 0:
                break
            end = small.rfind(b"\n", 0, at) + 1
            begins.add(end)
    return [
        block[begin : block.index(b"\n", begin)].decode("utf-8", "replace")
        for begin in sorted(begins)
    ]


def read_line(progress: Progress, line: str, now: float) -> Progress:
    """Return the progress after a line of the job's output; the same when it tells nothing."""
    if len(line) > MAX_LINE or not _WORTH_A_LOOK.search(line):
        return progress
    line = _TERMINAL_CODES.sub("", line)
    if is_of_an_error(line) or _CALL.fullmatch(line):
        return progress
    result = _RESULT.search(line)
    if result:
        return _with_result(progress, _json_object(result.group(1)), now)
    # Long runs of blanks would cost the patterns a time that grows with their cube.
    line = _BLANKS.sub(" ", line)
    epoch = _EPOCH.match(line)
    if epoch:
        counts = {"epoch": _whole(int(epoch.group(1))), "epochs": _whole(int(epoch.group(2)))}
        return replace(_with_numbers(progress, counts, now), batches=0)
    batch = _BATCH.match(line)
    if batch is None:
        step = _STEP.search(line)
        told = _numbers_in(line)
        return _with_line(progress, _steps(int(step.group(1))) if step else None, told, now)
    done, batches = int(batch.group(1)), int(batch.group(2))
    if _is_evaluation(progress, batches):
        told = {f"{_EVALUATION}_{name}": value for name, value in _numbers_in(line).items()}
        return _with_line(progress, None, told, now)
    # Keras counts batches within an epoch; the whole run's count is what can be compared.
    whole = _steps((max(progress.epoch or 1, 1) - 1) * batches + done)
    progress = replace(progress, batches=batches)
    # Until its last batch a bar shows the mean of an epoch's first ones, of one perhaps.
    return _with_line(progress, whole, _numbers_in(line), now, is_whole=done >= batches)


def read_record(progress: Progress, line: str, now: float) -> Progress:
    """Return the progress after one line of the progress file, a JSON object.

    A line that is none is passed over: the job may be in the middle of writing it.
    """
    record = _json_object(line)
    if record is None:
        return progress
    found = {
        "step": _steps(record.get("step", record.get("global_step"))),
        "loss": number(record.get("loss")),
        "accuracy": number(record.get("accuracy")),
        "epoch": _whole(record.get("epoch")),
        "epochs": _whole(record.get("epochs")),
    }
    progress = _with_metrics(_with_numbers(progress, found, now), found, record, now, is_whole=True)
    result = record.get("result")
    return _with_result(progress, result, now) if isinstance(result, dict) else progress


def _with_numbers(progress: Progress, found: Mapping[str, Optional[float]], now: float) -> Progress:
    known: Dict[str, Any] = {name: value for name, value in found.items() if value is not None}
    if "step" in known:
        progress = replace(_with_step(progress, known["step"]), told=True)
    return replace(progress, at=now, **known) if known else progress


def _with_metrics(
    progress: Progress,
    found: Mapping[str, Optional[float]],
    record: Mapping[str, Any],
    now: float,
    *,
    is_whole: bool,
) -> Progress:
    """Add what ``record`` names beside ``found``, which has a place of its own.

    Numbers that are not ``is_whole`` are those of the moment, and no extremes.
    """
    numbers = {k: number(v) for k, v in record.items() if k not in _NAMED and len(k) <= MAX_NAME}
    told = {name: value for name, value in numbers.items() if value is not None}
    newest = {k: v for k in ("loss", "accuracy") if (v := found.get(k)) is not None}
    newest.update(told)
    if not newest:
        return progress
    known = dict(progress.metrics)
    for name, value in told.items():
        if name in known or len(known) < MAX_METRICS:
            known[name] = value
    named = progress.named.union(newest)
    kept = {name: value for name, value in newest.items() if name in known or name not in told}
    if is_whole:
        progress = _with_extremes(progress, kept)
    told_at = _told_now(progress, kept)
    return replace(progress, metrics=known, newest=newest, named=named, told_at=told_at, at=now)


def _with_extremes(progress: Progress, told: Mapping[str, float]) -> Progress:
    """Return the progress with what was told now where it is less or more than ever before."""
    found: Dict[str, Tuple[_Told, _Told]] = {}
    for name, value in told.items():
        least, most = progress.extremes.get(name, ((None, math.inf), (None, -math.inf)))
        now = (progress.step, value)
        if math.isfinite(value) and not least[1] <= value <= most[1]:
            found[name] = (min(least, now, key=_value), max(most, now, key=_value))
    return replace(progress, extremes={**progress.extremes, **found}) if found else progress


def _value(told: _Told) -> float:
    return told[1]


def _told_now(progress: Progress, names: Iterable[str]) -> Mapping[str, int]:
    """Return at which step each metric was told, once these are told at the present one."""
    if progress.step is None:
        return progress.told_at
    return {**progress.told_at, **dict.fromkeys(names, progress.step)}


def _with_line(
    progress: Progress,
    step: Optional[int],
    told: Mapping[str, float],
    now: float,
    *,
    is_whole: bool = True,
) -> Progress:
    found = {"step": step, "loss": told.get("loss"), "accuracy": told.get("accuracy")}
    progress = _with_numbers(progress, found, now)
    return _with_metrics(progress, found, told, now, is_whole=is_whole)


def _is_evaluation(progress: Progress, batches: int) -> bool:
    """Say whether a bar of Keras is that of ``evaluate``: it has other batches than the epoch.

    ``fit`` with one epoch alone prints no line for it: there the larger bar is that of a training.
    """
    of = progress.batches
    return 0 < of != batches and (progress.epoch is not None or batches < of)


def _numbers_in(line: str) -> Dict[str, float]:
    """Return the numbers that a line names; those of the training by ``loss`` and ``accuracy``."""
    found = {k: v for k, v in _pairs(line).items() if k.lower() not in ("loss", "accuracy")}
    for name, pattern in (("loss", _LOSS), ("accuracy", _ACCURACY)):
        for match in reversed(list(pattern.finditer(line))):
            value = float(match.group(2))
            if match.groupdict().get("percent"):
                value /= 100
            of = match.group("of")
            found[f"{of.lower()}_{name}" if of else name] = value
    return found


def _pairs(line: str) -> Dict[str, float]:
    line = line.strip()
    pairs = _PLAIN_PAIR.findall(line)
    if len(pairs) < 2 or _PLAIN_PAIR.sub("", line).strip():
        pairs = _PAIR.findall(line)
    return {name: float(value) for name, value in pairs}


def _with_step(progress: Progress, step: int) -> Progress:
    moved = step != progress.start_step
    return replace(progress, step=step, start_step=step, start_steps=progress.start_steps + moved)


def _with_result(
    progress: Progress, result: Optional[Mapping[str, Any]], now: Optional[float]
) -> Progress:
    if result is None or not _is_shallow(result, MAX_DEPTH):
        return progress
    return replace(progress, result=plain(result), at=now)


def _is_shallow(value: object, depth: int) -> bool:
    if not isinstance(value, (dict, list)):
        return True
    parts = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_shallow(part, depth - 1) for part in parts)


def _steps(value: object) -> Optional[int]:
    count = _whole(value)
    return None if count is None or abs(count) > contract.MOST_STEPS else count


def _whole(value: object) -> Optional[int]:
    told = number(value)
    return int(told) if told is not None and abs(told) <= MAX_COUNT else None


def _json_object(text: str) -> Optional[Mapping[str, Any]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
