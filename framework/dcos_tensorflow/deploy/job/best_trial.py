"""The best trial of a sweep as a job of its own, which trains in full: ``sweep best NAME --run``.

Its options are those that the sweep runs with, as its scheduler or its state tells them, without
the search and with the trial's parameters where a job's own stand: in JOB_CONTEXT and as PARAM_*
variables. Its code is that of the trials, as it was packed for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.kept import stored
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.job_parameters import option_of_role, variables
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.job.kept_options import folder_of, known_options, refuse_hidden
from dcos_tensorflow.deploy.job.preparation import packed_job
from dcos_tensorflow.job_code.arguments import filled
from dcos_tensorflow.workloads.sweep.leaderboard import Row


def given_options(
    service: KnownService,
    best: Row,
    overrides: tuple[str, ...],
    work: WorkDirectory,
    *,
    fresh: bool,
) -> GivenOptions:
    """Return the options of the job that trains with the parameters of a trial.

    ``fresh`` says that earlier checkpoints of it are removed. Raises CliError and OptionsError.
    """
    source, directory = with_parameters(known_options(service), best), service.directory
    folder = folder_of(directory)
    if directory is not None:
        code = packed_job(directory, source["service"]["job_url"])
        source["service"]["job_url"] = str(code or source["service"]["job_url"])
    given = GivenOptions(source, overrides, folder)
    _check(given, service, work, fresh=fresh)
    return given


def with_parameters(known: Mapping[str, Any], best: Row) -> dict[str, Any]:
    """Return the options of one training in place of those of a sweep."""
    service = dict(known["service"])
    context = {**json.loads(service.get("job_context") or "{}"), **best.parameters}
    service |= {
        "name": f"{service['name']}-best",
        "job_context": json.dumps(context),
        "env": {**service["env"], **variables(best.parameters)},
        "job_args": [filled(each, best.parameters) for each in service.get("job_args", ())],
    }
    found = {**known, "service": service}
    del found["sweep"]
    for name, value in best.parameters.items():
        if option_of_role(name) is not None:
            group, _, option = name.partition(".")
            found[group] = {**found.get(group, {}), option: value}
    # Beside the trials' own folders, and never on from the checkpoints of another best one.
    below = f"best-{best.number}"
    if service.get("shared_filesystem"):
        service["shared_filesystem"] = f"{service['shared_filesystem'].rstrip('/')}/{below}"
    if known["checkpoints"].get("uri"):
        uri = f"{known['checkpoints']['uri'].rstrip('/')}/{below}"
        found["checkpoints"] = {**known["checkpoints"], "uri": uri}
    return found


def _check(given: GivenOptions, service: KnownService, work: WorkDirectory, *, fresh: bool) -> None:
    """Refuse what is not told whole, code that is not here, and checkpoints of another training."""
    options = given.load()
    refuse_hidden(
        given,
        service.name,
        "run it with an options file, and the parameters that sweep best shows as"
        " service.job_context",
    )
    url = options.service.job_url
    if service.directory is None and url and "://" not in url and not Path(url).is_absolute():
        raise CliError(
            f"The code of {service.name}, {url}, lies with its scheduler: run this on that machine,"
            " or name the code with --set service.job_url=..."
        )
    directory = work.service(options.service.name)
    kept = directory.checkpoints
    if not fresh and kept.is_dir() and any(kept.iterdir()):
        before = stored.stored_state(stored.state_url(directory), options.service.name)
        if before is not None and before.spec.job.context != options.service.job_context:
            raise UsageError(
                f"{options.service.name} has trained with other parameters before: remove its"
                f" checkpoints in {kept} with --fresh, or give this one a name of"
                " its own with --set service.name=..."
            )
