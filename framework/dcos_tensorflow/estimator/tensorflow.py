"""``TensorFlow``: a job as Python describes it, and the ways to begin it and to find it again.

It begins a job as ``run --detach`` does, by the same functions: whatever happens to this process,
the job goes on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dcos_tensorflow.cli.embedded.machine import AgentWishes
from dcos_tensorflow.cli.services import registry
from dcos_tensorflow.cli.serving.deployment import in_background, made_ready
from dcos_tensorflow.cli.serving.given_options import GivenOptions
from dcos_tensorflow.cli.serving.run_request import RunRequest
from dcos_tensorflow.cli.serving.script_job import (
    ScriptFlags,
    check_is_script,
    options_of,
    read_script,
)
from dcos_tensorflow.cli.settings import collect_for_run
from dcos_tensorflow.cli.work_directory import WorkDirectory, work_directory
from dcos_tensorflow.estimator import arguments
from dcos_tensorflow.estimator.job import Job


class TensorFlow:
    """A training that can be begun: a script, and what it is to run with.

    ``entry_point`` is the script, a path below ``source_dir``, the folder of its code; without one
    that is the folder that the script lies in. ``hyperparameters`` reach the code as JOB_CONTEXT
    and as PARAM_* variables, ``script_arguments`` as its own arguments. ``options`` may name any
    option of docs/options.md, and win over all else. ``master`` is that of a Mesos cluster,
    ``zk://...``; without one the job runs on this machine, on the embedded cluster. ``work_dir`` is
    the folder of this user's services, as ``--work-dir`` names it.

    Nothing is looked at before ``fit``, and nothing of it is changed by it.
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
        self.hyperparameters = dict(hyperparameters or {})
        self.options = dict(options or {})
        self.master = master
        self.work_dir = None if work_dir is None else Path(work_dir)
        self._flags = ScriptFlags(
            workers=workers,
            ps=ps,
            gpus=gpus_per_worker,
            tensorflow=tensorflow,
            name=name,
            arguments=tuple(script_arguments) or None,
        )

    def fit(
        self,
        inputs: Mapping[str, str | Path] | None = None,
        *,
        wait: bool = True,
        logs: bool = True,
        fresh: bool = False,
    ) -> Job:
        """Begin the job and, with ``wait``, follow it to its end; return it.

        ``inputs`` are the data by the names that the code knows them under, each ``s3://...`` or a
        file or folder: INPUT_TRAIN leads to that of ``train``. ``logs`` shows what tasks print
        while it is followed. ``fresh`` removes the checkpoints of earlier runs first. Ctrl-C ends
        the following, and the job goes on.

        Raises OptionsError for wrong options, CliError where the job cannot be begun, and JobFailed
        when it was followed and did not succeed.
        """
        job = self._begun(self._given(inputs or {}), fresh=fresh)
        if wait:
            job.wait(logs=logs)
        return job

    @staticmethod
    def attach(name: str, *, work_dir: str | Path | None = None) -> Job:
        """Return a job of this machine by its service's name, as it runs or has ended.

        Raises UsageError, a CliError, for a name that no service has.
        """
        work = _work(work_dir)
        name, _ = registry.choose(work, name)
        return Job(name, work)

    def _given(self, inputs: Mapping[str, str | Path]) -> GivenOptions:
        """Return the options of the job. Raises UsageError."""
        path = self.entry_point if self.source_dir is None else self.source_dir / self.entry_point
        check_is_script(path)
        script = read_script(path, self.source_dir)
        options: arguments.Options
        options, notes = options_of(script, self._flags)
        if self.chief is not None:
            options = {**options, "chief": {"count": int(self.chief)}}
        options = arguments.with_hyperparameters(options, self.hyperparameters)
        options = arguments.laid_over(options, self.options)
        options = arguments.with_inputs(options, inputs, script.folder)
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
        options = given.load()
        directory = work.service(options.service.name)
        with made_ready(request, options, directory) as ready:
            in_background(ready)
            return Job(ready.prepared.spec.name, work)


def _work(work_dir: str | Path | None) -> WorkDirectory:
    return work_directory(None if work_dir is None else Path(work_dir), os.environ)
