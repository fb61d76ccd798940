"""The options of the best trial of a sweep, as a job of its own."""

from dcos_tensorflow.deploy.job.best_trial import with_parameters
from dcos_tensorflow.workloads.sweep.leaderboard import Row


def test_the_best_trial_is_trained_by_tasks_as_large_as_its_own() -> None:
    sweep = {
        "service": {"name": "sized", "env": {}, "job_args": ["--lr", "{rate}"]},
        "worker": {"count": 1, "cpus": 4, "mem": 512},
        "checkpoints": {},
        "sweep": {"max_trials": 9},
    }
    best = Row(3, "finished", {"worker.cpus": 0.5, "worker.count": 2, "rate": 0.1})
    found = with_parameters(sweep, best)
    assert found["worker"] == {"count": 2, "cpus": 0.5, "mem": 512}
    assert found["service"]["env"]["PARAM_RATE"] == "0.1"
    assert found["service"]["job_args"] == ["--lr", "0.1"]
    assert "sweep" not in found
