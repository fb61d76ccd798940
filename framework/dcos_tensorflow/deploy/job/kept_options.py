"""The options that a service runs with, or ran with last, to run a job with them once more.

Used by ``resume`` and for the best trial of a sweep. They are those of its state, else of its
scheduler; secrets are hidden in both, and options that hold any are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.kept import stored
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.options import as_given
from dcos_tensorflow.scheduler.secrets.masking import REDACTED


def resumed_options(service: KnownService, overrides: tuple[str, ...]) -> tuple[GivenOptions, bool]:
    """Return the options of the last run of a service, and whether it works on units.

    Raises CliError, and OptionsError for ``overrides``.
    """
    directory = service.directory
    if directory is None:
        raise UsageError(
            f"The options of {service.name} lie with its scheduler: run resume on that machine."
        )
    state = stored.stored_state(stored.state_url(directory), service.name)
    if state is None:
        raise CliError(f"{service.name} has no run that could be resumed: run starts one.")
    served = registry.read(directory)
    if state.job.phase is not JobPhase.DONE and served is not None and served.process_lives():
        raise CliError(
            f"The job of {service.name} has not ended, it is {state.job.phase}: there is nothing to"
            f" resume. See it with dcos-tensorflow status {service.name}."
        )
    found = known_options(service)
    given = GivenOptions(found, overrides, folder_of(directory))
    options = given.load()
    refuse_hidden(given, service.name, "run it once more with the command or the file of before")
    url = options.service.job_url
    if url and "://" not in url and not folder_of(directory).joinpath(url).exists():
        raise CliError(
            f"The code of {service.name} is not in {url} any more: name where it is with --set"
            " service.job_url=..."
        )
    return given, state.spec.units is not None


def known_options(service: KnownService) -> dict[str, Any]:
    """Return the options in force, or those of the last job. Raises CliError where none are known.

    On this machine they are read from the state: the API hides places of secrets, too.
    """
    if service.directory is not None:
        found = stored.stored_options(stored.state_url(service.directory), service.name)
    else:
        told = service.connect().get("/v1/configurations/target")["options"]
        found = _without_idle(told) if told else {}
    if not found:
        raise CliError(
            f"The options of {service.name} are not known: its scheduler was started without them."
        )
    return dict(found)


def folder_of(directory: ServiceDirectory | None) -> Path:
    """Return where relative paths in the options of a service start."""
    served = registry.read(directory) if directory is not None else None
    return Path(served.folder) if served is not None and served.folder else Path.cwd()


def state_of_last(directory: ServiceDirectory | None) -> str:
    """Return the state store that a service had, where it was not the one of its own folder."""
    served = registry.read(directory) if directory is not None else None
    own = directory.state_url if directory is not None else ""
    return served.state if served is not None and served.state not in ("", own) else ""


def refuse_hidden(given: GivenOptions, name: str, remedy: str) -> None:
    """Raise CliError for options with secrets, which are not told. Raises OptionsError."""
    if REDACTED in json.dumps(as_given(given.load())):
        raise CliError(f"The options of {name} hold secrets that are not told: {remedy}.")


def master_of(service: KnownService, *, is_said: bool) -> str:
    """Return the masters that the service's cluster has; empty for the embedded one.

    ``is_said``: a flag names another place. Raises UsageError where it is not known.
    """
    if is_said:
        return ""
    if service.directory is None:
        raise UsageError(
            "Where is it to be trained? The API does not tell: name the cluster with --master, or"
            " say --local."
        )
    served = registry.read(service.directory)
    return served.master if served is not None and not served.local else ""


def _without_idle(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return options that the API has told without places of secrets that nothing is read from.

    It hides these, too, and they have defaults.
    """
    service = dict(known["service"])
    kerberos = dict(service["security"]["kerberos"])
    if not service["use_gcs_key_secret"]:
        service.pop("gcs_key_secret", None)
    if not kerberos["enabled"]:
        kerberos.pop("keytab_secret", None)
    return {**known, "service": {**service, "security": {"kerberos": kerberos}}}
