"""``TensorFlow``: a job as Python describes it, and the ways to begin it and to find it again.

It begins a job as ``run --detach`` does, by the same functions: whatever happens to this process,
the job goes on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.work_directory import WorkDirectory, work_directory
from dcos_tensorflow.deploy.embedded.machine import AgentWishes
from dcos_tensorflow.deploy.job.deployment import RunRequest
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.job.script_job import (
    ScriptFlags,
    check_is_script,
    options_of,
    read_script,
)
from dcos_tensorflow.deploy.job.sweep_flags import goal_of
from dcos_tensorflow.deploy.settings import collect_for_run
from dcos_tensorflow.estimator import call_arguments
from dcos_tensorflow.estimator.job import Job, kept_spec
from dcos_tensorflow.estimator.queue import Queue
from dcos_tensorflow.estimator.unit_jobs import Batch, Sweep, kind_of


class TensorFlow:
    """A training that can be begun: a script, and what it is to run with.

    ``entry_point`` is the script, a path below ``source_dir``, the folder of its code; without one
    that is the folder that the script lies in. ``hyperparameters`` reach the code as JOB_CONTEXT
    and as PARAM_* variables, ``script_arguments`` as its own arguments. ``options`` may name any
    option of docs/options.md, and win over all else. ``master`` is that of a Mesos cluster,
    ``zk://...``; without one the job runs on this machine, on the embedded cluster. ``work_dir`` is
    the folder of this user's services, as ``--work-dir`` names it.

    No file is looked at before ``fit``, ``sweep`` or ``batch``, and nothing of it is changed there.
    """

    def __init__(
        self,
        entry_point: str | Path,
        *,
        source_dir: str | Path | None = None,
        workers: int | None = None,
        ps: int | None = None,
        chief: bool | None = None,
        gpus_per_worker: int | None = None,
        tensorflow: str | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        script_arguments: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
        master: str | None = None,
        work_dir: str | Path | None = None,
    ) -> None:
        self.entry_point = Path(entry_point)
        self.source_dir = None if source_dir is None else Path(source_dir)
        self.chief = chief
        self.hyperparameters = call_arguments.by_name("hyperparameters", hyperparameters)
        self.options = call_arguments.by_name("options", options)
        self.master = master
        self.work_dir = None if work_dir is None else Path(work_dir)
        self._flags = ScriptFlags(
            workers=workers,
            ps=ps,
            gpus=gpus_per_worker,
            tensorflow=tensorflow,
            name=name,
            arguments=call_arguments.words("script_arguments", script_arguments) or None,
        )

    def fit(
        self,
        inputs: Mapping[str, str | Path] | None = None,
        *,
        wait: bool = True,
        logs: bool = True,
        fresh: bool = False,
        queue: Queue | None = None,
    ) -> Job:
        """Begin the job and, with ``wait``, follow it to its end; return it.

        ``inputs`` are the data by the names that the code knows them under, each ``s3://...`` or a
        file or folder: INPUT_TRAIN leads to that of ``train``. ``logs`` shows what tasks print
        while it is followed. ``fresh`` removes the checkpoints of earlier runs first. Ctrl-C ends
        the following, and the job goes on.

        Raises OptionsError for wrong options, CliError where the job cannot be begun, and JobFailed
        when it was followed and did not succeed.
        """
        return self._run({}, inputs, wait=wait, logs=logs, fresh=fresh, queue=queue)

    def sweep(
        self,
        parameters: Mapping[str, Any],
        metric: str,
        inputs: Mapping[str, str | Path] | None = None,
        *,
        goal: str | None = None,
        wait: bool = True,
        logs: bool = False,
        fresh: bool = False,
        queue: Queue | None = None,
        **sweep: Any,
    ) -> Sweep:
        """Begin a search for the best parameters and, with ``wait``, follow it; return it.

        ``parameters`` are what is tried by name, each a list of values or such as
        ``{"log_uniform": [1e-5, 0.1]}``; ``metric`` is the number that tells how good a trial is,
        and ``goal`` whether more of it is better (maximize) or less (minimize): left out, its name
        says it, and less is better of a loss or an error. What else there is to say is options of
        the section ``sweep`` (docs/options.md), such as ``max_trials``; all else is as with
        ``fit``.
        """
        tried = call_arguments.plain_values(
            "parameters", call_arguments.by_name("parameters", parameters)
        )
        objective = {"metric": metric, "goal": goal or str(goal_of(metric))}
        units = {"sweep": {"parameters": tried, "objective": objective, **sweep}}
        job = self._run(units, inputs, wait=wait, logs=logs, fresh=fresh, queue=queue)
        return cast(Sweep, job)

    def batch(
        self,
        inputs: Mapping[str, Any] | range | str | Path,
        output: str | Path,
        *,
        resume: bool = False,
        wait: bool = True,
        logs: bool = False,
        queue: Queue | None = None,
        **batch: Any,
    ) -> Batch:
        """Begin to work on a big input in pieces and, with ``wait``, follow that; return it.

        ``inputs`` is a range whose step is the size of a piece, a folder, a pattern of files such
        as ``data/*.csv``, ``s3://bucket/images/``, or such as
        ``{"files": "data/*.csv", "per_shard": 20}`` and ``{"manifest": "inputs.txt"}``; ``output``
        is a path or a place in S3 with ``{index}`` in it. Where output is there already ``resume``
        does what is missing; without it that is an error. What else there is to say is options of
        the section ``batch`` (docs/options.md), such as ``parallelism``; all else is as with
        ``fit``.
        """
        pieces = call_arguments.pieces(inputs, self._folder)
        place = call_arguments.place_of("output", output, self._folder)
        units = {"batch": {"inputs": pieces, "output": place, "resume": resume, **batch}}
        return cast(Batch, self._run(units, None, wait=wait, logs=logs, queue=queue))

    @staticmethod
    def attach(name: str, *, work_dir: str | Path | None = None) -> Job:
        """Return a job of this machine by its service's name, as it runs or has ended.

        It is a ``Sweep`` or a ``Batch`` where it is one. Raises UsageError, a CliError, for a name
        that no service has.
        """
        work = _work(work_dir)
        name, directory = registry.choose(work, name)
        spec = None
        # A store that this process may not read must not keep it from the job.
        with suppress(CliError):
            spec = kept_spec(directory, name)
        return kind_of(spec)(name, work)

    def _run(
        self,
        units: call_arguments.Options,
        inputs: Mapping[str, str | Path] | None,
        *,
        wait: bool,
        logs: bool,
        fresh: bool = False,
        queue: Queue | None = None,
    ) -> Job:
        """Begin the job, with options of its ``units``, and with ``wait`` follow it; return it.

        With a ``queue`` it begins when its turn comes.
        """
        given, work = self._given(units, inputs), _work(self.work_dir)
        if queue is not None:
            if fresh:
                raise UsageError(
                    "fresh: a queue removes no checkpoints; give the job another name."
                )
            kind = {"sweep": Sweep, "batch": Batch}.get(next(iter(units), ""), Job)
            job = kind(queue.submit(given, work), work)
            if wait:
                queue.wait(job, work, logs=logs)
            return job
        job = self._begun(given, fresh=fresh)
        if wait:
            job.wait(logs=logs)
        return job

    @property
    def _script(self) -> Path:
        return self.entry_point if self.source_dir is None else self.source_dir / self.entry_point

    @property
    def _folder(self) -> Path:
        """Return where relative paths of the options start."""
        return (self.source_dir or self._script.resolve().parent).resolve()

    def _given(
        self, units: call_arguments.Options, inputs: Mapping[str, str | Path] | None
    ) -> GivenOptions:
        """Return the options of the job. Raises UsageError."""
        check_is_script(self._script)
        script = read_script(self._script, self.source_dir)
        options: call_arguments.Options
        options, notes = options_of(script, self._flags)
        if self.chief is not None:
            # True is one; what is neither is told with the other options.
            options = {**options, "chief": {"count": self.chief * 1}}
        options = call_arguments.with_hyperparameters(options, self.hyperparameters)
        options = call_arguments.laid_over({**options, **units}, self.options)
        known = call_arguments.by_name("inputs", inputs)
        options = call_arguments.with_inputs(options, known, script.folder)
        return GivenOptions(options, folder=script.folder, notes=notes, is_script=True)

    def _begun(self, given: GivenOptions, *, fresh: bool) -> Job:
        """Return the job of these options, begun. Raises CliError and OptionsError."""
        work = _work(self.work_dir)
        request = RunRequest(
            given=given,
            settings=collect_for_run(os.environ, {"master": self.master}),
            wishes=AgentWishes(),
            work=work,
            detach=True,
            fresh=fresh,
            yes=True,
        )
        from dcos_tensorflow.deploy.background import in_background
        from dcos_tensorflow.deploy.run import prepared_alone

        with prepared_alone(request) as ready:
            in_background(ready)
        spec = ready.prepared.spec
        return kind_of(spec)(spec.name, work)


def _work(work_dir: str | Path | None) -> WorkDirectory:
    return work_directory(None if work_dir is None else Path(work_dir), os.environ)
