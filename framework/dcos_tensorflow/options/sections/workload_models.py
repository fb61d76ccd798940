"""The options of services that work on many units: sweeps and batches, and their types."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from dcos_tensorflow.core.spec.workload_spec import OUTPUT_INDEX, Parameter, ParameterKind
from dcos_tensorflow.options import document
from dcos_tensorflow.options.sections.section import Section, group
from dcos_tensorflow.options.sections.storage import bucket_flaw, is_s3
from dcos_tensorflow.options.sections.values import (
    MAXIMUM_COUNT,
    Allowed,
    Line,
    RetryLimit,
    given,
    list_from_text,
    object_from_text,
    problem,
    single_line,
    text_schema,
    whole,
)

if TYPE_CHECKING:
    from dcos_tensorflow.options.models import Options

#: Written for as many trials or shards at a time as find a place.
AUTO: Final = "auto"
#: Beyond this a float is no whole number any more.
_LARGEST = 2**53
_LONGEST_NAME, _LONGEST_CHOICE = 64, 200
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"


def _range_of(bounds: object, kind: str, *, whole_numbers: bool) -> tuple[float, float]:
    """Return the bounds of a range. Raises PydanticCustomError."""
    numbers = "whole numbers" if whole_numbers else "numbers"
    if not isinstance(bounds, list) or len(bounds) != 2 or not all(map(_is_number, bounds)):
        raise problem(f"{kind} needs two {numbers}, the least and the most")
    low, high = bounds
    if whole_numbers and not all(float(bound).is_integer() for bound in bounds):
        raise problem(f"{kind} needs two {numbers}, the least and the most")
    if low >= high:
        raise problem(
            f"the range is empty: {document.shown(low)} is not less than {document.shown(high)}",
            document.shown({kind: [high, low]}) if low > high else "",
        )
    return low, high


def _uniform(bounds: object, kind: str) -> Parameter:
    low, high = _range_of(bounds, kind, whole_numbers=False)
    return Parameter("", ParameterKind.FLOAT, low, high, log=_positive(low, kind))


def _int(bounds: object, kind: str) -> Parameter:
    low, high = _range_of(bounds, kind, whole_numbers=True)
    return Parameter("", ParameterKind.INT, int(low), int(high), log=_positive(low, kind))


def _positive(low: float, kind: str) -> bool:
    """Say whether a kind is spread by its logarithm. Raises PydanticCustomError below that."""
    if not kind.startswith("log_"):
        return False
    if low <= 0:
        raise problem(f"{kind} needs bounds above 0, and {document.shown(low)} has no logarithm")
    return True


def _quantised(bounds: object, kind: str) -> Parameter:
    if not isinstance(bounds, list) or len(bounds) != 3 or not all(map(_is_number, bounds)):
        raise problem(f"{kind} needs three numbers: the least, the most, and the step between two")
    low, high = _range_of(bounds[:2], kind, whole_numbers=False)
    step = bounds[2]
    if not 0 < step <= high - low:
        raise problem(f"the step {document.shown(step)} is not between 0 and the range's length")
    if (high - low) / step > MAXIMUM_COUNT:
        raise problem(f"has more than {MAXIMUM_COUNT} values")
    if all(float(number).is_integer() for number in bounds):
        return Parameter("", ParameterKind.INT, int(low), int(high), step=int(step))
    return Parameter("", ParameterKind.FLOAT, low, high, step=step)


def _choice(values: object, kind: str = "choice") -> Parameter:
    if not isinstance(values, list):
        raise problem(f"{kind} needs a list of values")
    if not values:
        raise problem("there is nothing to choose from: the list is empty")
    for value in values:
        for part in value if isinstance(value, list) else [value]:
            if not (isinstance(part, str | bool) or part is None or _is_number(part)):
                raise problem(
                    "a value must be a text, a number, true, false, null, or a list of these, not"
                    f" {document.kind_of(part)}"
                )
        if len(json.dumps(value)) > _LONGEST_CHOICE + 2:
            raise problem(f"a value is longer than {_LONGEST_CHOICE} characters")
    values = [tuple(value) if isinstance(value, list) else value for value in values]
    # To Python 1, 1.0 and true are the same value, and to a sweep two of them would be one.
    seen = set()
    for value in values:
        if value in seen:
            raise problem(f"has the value {document.shown(value)} more than once")
        seen.add(value)
    return Parameter("", ParameterKind.CHOICE, choices=tuple(values))


_KINDS: Mapping[str, Callable[[object, str], Parameter]] = {
    "uniform": _uniform,
    "log_uniform": _uniform,
    "int": _int,
    "log_int": _int,
    "quantised": _quantised,
    "choice": _choice,
}


def parameter_of(name: str, told: object) -> Parameter:
    """Return the parameter that is written so. Raises PydanticCustomError."""
    parameter = _parameter(told)
    return Parameter(**{**vars(parameter), "name": name})


def _parameter(told: object) -> Parameter:
    if isinstance(told, list):
        return _choice(told)
    kinds = ", ".join(_KINDS)
    if not isinstance(told, Mapping):
        raise problem(
            f"must be a list of values, or an object with one of {kinds}, not "
            f"{document.kind_of(told)}",
            f"[{document.shown(told)}]" if isinstance(told, str | int | float) else "",
        )
    if len(told) != 1:
        raise problem(f"must be an object with just one of {kinds}")
    ((kind, bounds),) = told.items()
    if kind not in _KINDS:
        near = get_close_matches(str(kind).lower().replace("-", "_"), _KINDS, n=1, cutoff=0.5)
        raise problem(f"{document.shown(kind)} is none of {kinds}", near[0] if near else "")
    return _KINDS[kind](bounds, kind)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and abs(value) <= _LARGEST


def _checked_parameter(told: object) -> object:
    _parameter(told)
    return told


def _parameter_names(told: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in told:
        if not re.fullmatch(_NAME, name) or len(name) > _LONGEST_NAME:
            raise problem(
                f"{document.shown(name)} is no name of a parameter: letters, digits, _, . and -, "
                f"at most {_LONGEST_NAME}, a letter or _ first"
            )
    return told


def _parallelism(value: object) -> object:
    """Take a number as text, too, which is all that a package can pass."""
    if value == AUTO:
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        value = int(value)
    value = whole(value)
    if isinstance(value, bool) or not isinstance(value, int):
        near = get_close_matches(value.lower(), [AUTO], n=1) if isinstance(value, str) else []
        kind = "a text" if isinstance(value, str) else document.kind_of(value)
        raise problem(f"must be a whole number or {AUTO}, not {kind}", near[0] if near else "")
    if not 1 <= value <= MAXIMUM_COUNT:
        raise problem("is too small" if value < 1 else "is too large")
    return value


def _shard_range(value: object) -> object:
    parsed = list_from_text(value)
    if not isinstance(parsed, list) or not parsed:
        return parsed
    numbers = [n for n in map(whole, parsed) if type(n) is int and abs(n) <= _LARGEST]
    if not len(parsed) == len(numbers) == 3:
        raise problem("must be three whole numbers: begin, end, and how many a shard has of them")
    begin, end, size = numbers
    if begin >= end:
        raise problem(
            f"the range is empty: it begins at {begin} and ends before {end}",
            document.shown([end, begin, size]) if begin > end else "",
        )
    if size < 1:
        raise problem(f"a shard cannot have {size}")
    if (end - begin) / size > MAXIMUM_COUNT:
        fewest = -(-(end - begin) // MAXIMUM_COUNT)
        raise problem(
            f"makes more than {MAXIMUM_COUNT} shards", document.shown([begin, end, fewest])
        )
    return numbers


def _prefix(value: str) -> str:
    single_line(value)
    if not value:
        return value
    if not is_s3(value):
        raise problem("is no place in S3", "s3://bucket/prefix")
    flaw = bucket_flaw(value)
    if flaw:
        raise problem(flaw)
    return value


def _manifest(value: str) -> str:
    single_line(value)
    if value.endswith("/"):
        raise problem("must name a file", value.rstrip("/"))
    if is_s3(value):
        return _prefix(value)
    if "://" in value:
        raise problem("must be a path or in S3", "s3://bucket/inputs.txt")
    return value


def _files(value: str) -> str:
    single_line(value)
    if is_s3(value):
        raise problem("is in S3, and the files are those of a machine", "batch.inputs.s3_prefix")
    if "://" in value:
        raise problem("must be a path", "data/*.csv")
    return value


def _output(value: str) -> str:
    single_line(value)
    if not value:
        return value
    if is_s3(value):
        _prefix(value)
    elif "://" in value:
        raise problem("must be a path or in S3", "s3://bucket/part-{index}")
    rest = OUTPUT_INDEX.sub("", value)
    if "{" in rest or "}" in rest:
        raise problem("has other braces than {index} and, for five digits, {index:05}")
    if rest == value and not value.endswith("/"):
        folder, slash, name = value.rpartition("/")
        stem, dot, ending = name.partition(".")
        near = f"{folder}{slash}{stem}-{{index}}{dot}{ending}"
        raise problem("is one name for all shards: it needs {index}", near)
    return value


_BOUNDS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_VALUES = {
    "type": "array",
    "items": {
        "type": ["string", "number", "boolean", "null", "array"],
        "items": {"type": ["string", "number", "boolean", "null"]},
    },
    "minItems": 1,
    "uniqueItems": True,
}
_OF_KIND = {
    **dict.fromkeys(("uniform", "log_uniform", "int", "log_int"), _BOUNDS),
    "quantised": {**_BOUNDS, "minItems": 3, "maxItems": 3},
    "choice": _VALUES,
}
_PARAMETER_SCHEMA = {
    "anyOf": [
        _VALUES,
        *(
            {
                "type": "object",
                "properties": {kind: schema},
                "required": [kind],
                "additionalProperties": False,
            }
            for kind, schema in _OF_KIND.items()
        ),
    ]
}

Parameters = Annotated[
    dict[
        str, Annotated[Any, BeforeValidator(_checked_parameter), WithJsonSchema(_PARAMETER_SCHEMA)]
    ],
    BeforeValidator(object_from_text),
    AfterValidator(_parameter_names),
    Field(json_schema_extra=text_schema),
    Allowed(
        "an object of parameters, each a list of values or an object such as "
        f"{json.dumps({'log_uniform': [0.0001, 0.1]})}; or JSON text of one"
    ),
]
Parallelism = Annotated[
    int | Literal["auto"],
    BeforeValidator(_parallelism),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAXIMUM_COUNT},
                {"type": "string", "pattern": f"^({AUTO}|[0-9]+)$"},
            ]
        }
    ),
    Allowed(f"a whole number from 1 to {MAXIMUM_COUNT}, or {AUTO}"),
]
Trials = Annotated[int, Field(ge=1, le=MAXIMUM_COUNT), BeforeValidator(whole)]
TrialsIfGiven = Annotated[Trials | None, BeforeValidator(given)]
Steps = Annotated[int, Field(ge=1, le=1_000_000_000), BeforeValidator(whole)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1), BeforeValidator(whole)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
ShardRange = Annotated[
    list[int],
    BeforeValidator(_shard_range),
    Field(json_schema_extra=text_schema),
    Allowed("a list of three whole numbers, such as [0, 1000, 100], or JSON text of one"),
]
PerShard = Annotated[int, Field(ge=1, le=MAXIMUM_COUNT), BeforeValidator(whole)]
InputPrefix = Annotated[
    str, AfterValidator(_prefix), Allowed("a place such as s3://bucket/prefix, or empty text")
]
Manifest = Annotated[
    str, AfterValidator(_manifest), Allowed("a path or an object in S3, or empty text")
]
InputFiles = Annotated[
    str, AfterValidator(_files), Allowed("a folder, or a pattern such as data/*.csv, or empty text")
]
Output = Annotated[
    str,
    AfterValidator(_output),
    Allowed("a path or a place in S3 with {index} in it, or a folder, which ends in /"),
]


class Objective(Section):
    """What a sweep looks for."""

    metric: Line = Field(
        "",
        title="Metric",
        description="Metric that rates a trial: a number that the job prints, writes into "
        "PROGRESS_FILE or an event file, or has in its result. The value in the result counts, "
        "else the last value.",
    )
    goal: Literal["maximize", "minimize"] = Field(
        "maximize",
        title="Goal",
        description="Whether larger or smaller values of the metric are better.",
    )


class Sweep(Section):
    """A search for the best parameters of a job."""

    parameters: Parameters = Field(
        default={},
        title="Parameters",
        description="Parameters to search, by name: a list of values, or an object with one of "
        "uniform, log_uniform, int and log_int (smallest and largest value), quantised (also "
        "the step) or choice (a list). A trial finds them in its context and in the variables "
        "PARAM_<NAME>; a parameter with the name of a role's option, such as worker.cpus, sets "
        "that option for the trial. Empty: no sweep.",
    )
    method: Literal["tpe", "random", "grid"] = Field(
        "tpe",
        title="Method",
        description="How the next trial is chosen: tpe near good trials, random anywhere, grid "
        "by all combinations.",
    )
    objective: Objective = group(Objective, "The objective of the search.")
    max_trials: TrialsIfGiven = Field(
        None,
        title="Trials",
        description="Number of trials. Left out: 50, and with grid all combinations.",
    )
    parallelism: Parallelism = Field(
        "auto",
        title="Parallelism",
        description="Number of trials that run at a time. auto: as many as find a place.",
    )
    early_stopping: Literal["none", "median", "asha"] = Field(
        "none",
        title="Early stopping",
        description="Trials that are stopped before their end: median stops trials that are "
        "worse than the median of the others at the same point, asha stops all but the best "
        "third.",
    )
    min_steps: Steps = Field(
        1,
        title="First steps",
        description="First step at which a trial may be stopped; it is judged again each time "
        "its steps have tripled.",
    )
    seed: Seed = Field(
        0,
        title="Seed",
        description="Seed of the search: the same seed gives the same trials, also when tasks "
        "fail.",
    )
    max_retries: RetryLimit = Field(
        3,
        title="Retries",
        description="Number of retries of a failed trial. A trial that fails in the same way "
        "on two machines is not tried again; failures from outside, such as a lost agent, do "
        "not count.",
    )
    max_share: Share = Field(
        1.0, title="Largest share", description="Largest share of the cluster, from 0 to 1."
    )

    resume: bool = Field(
        False,
        title="Resume",
        description="Go on with the trials of the service's last run: those that finished are "
        "kept, and count for the search. Off: a new search.",
    )


class BatchInputs(Section):
    """What a batch works on: one of a range, a prefix, a manifest, and files."""

    range: ShardRange = Field(
        default=[],
        title="Range",
        description="Three numbers: the first number, the end (exclusive), and the size of a "
        "shard. A shard finds its part in SHARD_BEGIN and SHARD_END.",
    )
    s3_prefix: InputPrefix = Field(
        "",
        title="S3 prefix",
        description="All objects below s3://bucket/prefix, sorted by name. A shard finds its "
        "objects in the file SHARD_INPUTS, one per line.",
    )
    manifest: Manifest = Field(
        "",
        title="Manifest",
        description="A file beside the options, or in S3, with one input per line. A shard "
        "finds its inputs in the file SHARD_INPUTS.",
    )
    files: InputFiles = Field(
        "",
        title="Files",
        description="A folder, of which all files below it are meant, or a pattern such as "
        "data/*.csv (** for any folders), beside the options on the machine of run. Beyond "
        "the embedded cluster their folder is packed, and every task fetches it. run lists the "
        "files once, sorted by name. A shard finds its paths in the file SHARD_INPUTS.",
    )
    per_shard: PerShard = Field(
        10,
        title="Inputs of a shard",
        description="Number of objects of s3_prefix, lines of the manifest, or files, in a shard.",
    )


class Batch(Section):
    """Many pieces of input, each worked on by one task, once."""

    inputs: BatchInputs = group(BatchInputs, "The input. Empty: no batch.")
    output: Output = Field(
        "",
        title="Output",
        description="Place of each shard's output: a path that all machines share, or "
        "s3://bucket/prefix, with {index} for the shard's number ({index:05}: with five "
        "digits), or a folder that ends in / for part-{index} in it. A shard writes to the "
        "path in SHARD_OUTPUT; the service publishes it when the shard has ended with 0.",
    )
    parallelism: Parallelism = Field(
        "auto",
        title="Parallelism",
        description="Number of shards that run at a time. auto: as many as find a place.",
    )
    max_retries: RetryLimit = Field(
        3,
        title="Retries",
        description="Number of retries of a failed shard. A shard that fails in the same way "
        "on two machines is not tried again; failures from outside, such as a lost agent, do "
        "not count.",
    )
    max_share: Share = Field(
        1.0, title="Largest share", description="Largest share of the cluster, from 0 to 1."
    )
    resume: bool = Field(
        False,
        title="Resume",
        description="Work only on the inputs without output, those that have come since included. "
        "Off: existing output is an error.",
    )


#: The kinds of input that a batch may name.
INPUTS = ("range", "s3_prefix", "manifest", "files")


def given_inputs(options: Options) -> tuple[str, ...]:
    """Return the kinds of input that the batch names; none where there is no batch."""
    return tuple(name for name in INPUTS if getattr(options.batch.inputs, name))
