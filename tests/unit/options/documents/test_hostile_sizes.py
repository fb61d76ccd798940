"""Options of any size: each is refused with a sentence, or makes its first unit of work.

In a process of its own, to which the kernel gives a bounded memory: what is only counted must not
be made.
"""

import contextlib
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dcos_tensorflow.core.spec.workload_spec import BatchSpec, SweepSpec
from dcos_tensorflow.options import OptionsError, load, service_spec
from dcos_tensorflow.workloads import producer_of
from dcos_tensorflow.workloads.producer import WorkloadError

#: Beside what Python and its libraries take.
MEGABYTES = 128
SECONDS = 300

HUGE = st.sampled_from(
    [0, 1, 2, 99_999, 100_000, 100_001, 4_000_000, 2**31, 2**53, 2**63, 10**30, -1, -(2**53)]
) | st.floats(allow_nan=True)
TEXTS = st.sampled_from(["", "a", "a" * 100_000, "\u202e" * 10_000, "9" * 5_000, "{index}"])
VALUE = HUGE | TEXTS
PARAMETER = (
    st.integers(0, 20_000).map(lambda count: list(range(count)))
    | st.fixed_dictionaries({"choice": st.lists(VALUE, max_size=3)})
    | st.builds(
        lambda kind, numbers: {kind: numbers},
        st.sampled_from(["uniform", "log_uniform", "int", "log_int", "quantised"]),
        st.lists(HUGE | st.sampled_from([1e-300, 1e300, 0.001]), min_size=2, max_size=3),
    )
)
SWEEP = st.fixed_dictionaries(
    {
        "parameters": st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), PARAMETER),
        "objective": st.just({"metric": "loss"}),
    },
    optional={
        "method": st.sampled_from(["grid", "random", "tpe"]),
        "max_trials": VALUE,
        "parallelism": VALUE,
        "early_stopping": st.sampled_from(["none", "median", "asha"]),
        "min_steps": VALUE,
    },
)
BATCH = st.fixed_dictionaries(
    {
        "inputs": st.fixed_dictionaries(
            {}, optional={"range": st.lists(VALUE, min_size=3, max_size=3), "per_shard": VALUE}
        ),
        "output": TEXTS | st.just("out/part-{index}"),
    },
    optional={"parallelism": VALUE},
)
ROLES = st.fixed_dictionaries({}, optional={"count": VALUE, "cpus": VALUE, "mem": VALUE})


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.fixed_dictionaries({}, optional={"sweep": SWEEP, "batch": BATCH, "worker": ROLES}))
def try_sizes(options: Mapping[str, Any]) -> None:
    """Do what ``validate`` and the scheduler do first with options."""
    with contextlib.suppress(OptionsError, WorkloadError):
        workload = service_spec(load({"service": {"job_cmd": "true"}, **options})).workload
        if isinstance(workload, SweepSpec) or (workload is not None and not workload.listing):
            producer_of(workload).next(0, 1)


def try_listings() -> None:
    """Do what the scheduler does first with what is listed."""
    for listed in (100_001, 4_000_000):
        for per_shard in (1, 1000):
            batch = BatchSpec(output="out/{index}", per_shard=per_shard, listing="inputs.txt")
            with contextlib.suppress(WorkloadError):
                producer_of(batch, inputs=["a"] * listed).next(0, 1)


def begun() -> None:
    """Try everything, with little memory beside what is there once all is imported."""
    trial = {"parameters": {"a": {"uniform": [0, 1]}}, "objective": {"metric": "loss"}}
    workload = service_spec(load({"service": {"job_cmd": "true"}, "sweep": trial})).workload
    assert workload is not None
    producer_of(workload).next(0, 1)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEGABYTES * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try_listings()
    try_sizes()


def test_no_size_takes_more_memory_than_what_it_says() -> None:
    ran = subprocess.run(
        [sys.executable, __file__], check=False, capture_output=True, text=True, timeout=SECONDS
    )
    assert ran.returncode == 0, ran.stderr[-4000:]


if __name__ == "__main__":
    begun()
