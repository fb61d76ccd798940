"""The options of services that work on many units: sweeps and batches."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dcos_tensorflow.options.section import Section, group
from dcos_tensorflow.options.values import Line, RetryLimit
from dcos_tensorflow.options.workload_values import (
    InputPrefix,
    Manifest,
    Output,
    Parallelism,
    Parameters,
    PerShard,
    Seed,
    ShardRange,
    Share,
    Steps,
    TrialsIfGiven,
)


class Objective(Section):
    """What a sweep looks for."""

    metric: Line = Field(
        "",
        title="Metric",
        description="Which number tells how good a trial is: one that the job prints, writes into "
        "PROGRESS_FILE or an event file, or has in its result. The result counts, and where it "
        "has none of that name the last value.",
    )
    goal: Literal["maximize", "minimize"] = Field(
        "maximize", title="Goal", description="Whether more of the metric is better, or less."
    )


class Sweep(Section):
    """A search for the best parameters of a job."""

    parameters: Parameters = Field(
        default={},
        title="Parameters",
        description="What is tried, by name: a list of values, or an object with one of uniform, "
        "log_uniform, int and log_int (the least and the most), quantised (and the step) or choice "
        "(a list). A trial finds them in its context and in PARAM_ and the name; one called as an "
        "option of a role, such as worker.cpus, is that option of the trial. Empty: no sweep.",
    )
    method: Literal["tpe", "random", "grid"] = Field(
        "tpe",
        title="Method",
        description="How the next trial is found: tpe near what was good so far, random anywhere, "
        "grid by all combinations.",
    )
    objective: Objective = group(Objective, "What the sweep looks for.")
    max_trials: TrialsIfGiven = Field(
        None,
        title="Trials",
        description="How many trials there are. Left out: 50, and with grid all combinations.",
    )
    parallelism: Parallelism = Field(
        "auto",
        title="Parallelism",
        description="How many trials run at a time. auto: as many as find a place.",
    )
    early_stopping: Literal["none", "median", "asha"] = Field(
        "none",
        title="Early stopping",
        description="Which trials are stopped before their end: median those that are worse than "
        "the median of the others at the same point, asha all but the best third.",
    )
    min_steps: Steps = Field(
        1,
        title="First steps",
        description="Before this step no trial is stopped; then it is judged again each time that "
        "it has three times the steps.",
    )
    seed: Seed = Field(
        0,
        title="Seed",
        description="The same seed gives the same trials, whatever fails on the way.",
    )
    max_retries: RetryLimit = Field(
        3,
        title="Retries",
        description="How often a trial that fails is tried again. One that fails the same way on "
        "two machines is not; what is not its fault, such as a lost agent, does not count.",
    )
    max_share: Share = Field(
        1.0, title="Largest share", description="How much of the cluster may be taken, of 1."
    )


class BatchInputs(Section):
    """What a batch works on: one of a range, a prefix and a manifest."""

    range: ShardRange = Field(
        default=[],
        title="Range",
        description="Numbers from the first up to the second, which is not within, as many in a "
        "shard as the third says. A shard finds its part in SHARD_BEGIN and SHARD_END.",
    )
    s3_prefix: InputPrefix = Field(
        "",
        title="S3 prefix",
        description="All objects below s3://bucket/prefix, sorted by their names. A shard finds "
        "its own in the file that SHARD_INPUTS names, one a line.",
    )
    manifest: Manifest = Field(
        "",
        title="Manifest",
        description="A file beside the options, or in S3, with one input in each line. A shard "
        "finds its own in the file that SHARD_INPUTS names.",
    )
    per_shard: PerShard = Field(
        10,
        title="Inputs of a shard",
        description="How many objects of s3_prefix or lines of the manifest a shard has.",
    )


class Batch(Section):
    """Many pieces of input, each worked on by one task, once."""

    inputs: BatchInputs = group(BatchInputs, "What is worked on. Nothing in it: no batch.")
    output: Output = Field(
        "",
        title="Output",
        description="Where each shard's output is written: a path that all machines share, or "
        "s3://bucket/prefix, with {index} for the shard's number ({index:05}: with five digits), "
        "or a folder that ends in / for part-{index} in it. A shard finds where to write in "
        "SHARD_OUTPUT; it is published once it has ended with 0.",
    )
    parallelism: Parallelism = Field(
        "auto",
        title="Parallelism",
        description="How many shards are worked on at a time. auto: as many as find a place.",
    )
    max_retries: RetryLimit = Field(
        3,
        title="Retries",
        description="How often a shard that fails is tried again. One that fails the same way on "
        "two machines is not; what is not its fault, such as a lost agent, does not count.",
    )
    max_share: Share = Field(
        1.0, title="Largest share", description="How much of the cluster may be taken, of 1."
    )
    resume: bool = Field(
        False,
        title="Resume",
        description="Work on those shards alone whose output is not there. Otherwise output that "
        "is there is an error.",
    )
