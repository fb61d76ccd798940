"""A first options file for a script, with the few options that matter and why they are there.

Used by ``init``. It has the options that the code needs and those that users change first; comments
are entries whose names begin with ``//``, so that the file is plain JSON. Nothing is written here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dcos_tensorflow.deploy.job.script_job import Script, ScriptFlags, options_of
from dcos_tensorflow.deploy.job.unseen_paths import unseen_paths
from dcos_tensorflow.job_code.names import INDEPENDENT, MULTI_WORKER, PARAMETER_SERVER
from dcos_tensorflow.options import load, service_spec
from dcos_tensorflow.options.sections.role_models import ParameterServer

_CLUSTER = frozenset((PARAMETER_SERVER, MULTI_WORKER))
#: With which Keras ``fit`` under these strategies needs that of before.
_KERAS_3 = (2, 16)
#: What people call the list of what their code imports.
_REQUIREMENTS = "requirements.txt"
_ROLES = ("parameter_server", "chief", "worker", "gpu_worker")


def first_options(script: Script, flags: ScriptFlags, output: Path) -> str:
    """Return the text of an options file at ``output``. Raises UsageError and OptionsError."""
    if script.facts.strategy == PARAMETER_SERVER and flags.ps is None:
        flags = replace(flags, ps=1)
    options, _ = options_of(script, flags)
    service = options["service"]
    service["job_url"] = os.path.relpath(service["job_url"], output.absolute().parent)
    found: dict[str, Any] = {"//": _about(script), "service": _service(script, service)}
    for group in _ROLES:
        if group in options:
            found[group] = _role(script, group, options[group])
    if "sweep" in options:
        found["sweep"] = options["sweep"]
    if script.facts.evaluator is not None:
        place = script.facts.evaluator.place
        why = f"{place} knows of an evaluator: 1 runs one beside the training."
        found["evaluator"] = {"// count": why, "count": 0}
    found["checkpoints"] = {
        "// uri": "Where CHECKPOINT_DIR is kept. Empty: in the service's folder on this machine;"
        " for more machines a directory that all of them share, or s3://bucket/path.",
        "uri": "",
    }
    folder = output.absolute().parent
    spec = service_spec(load(found, folder=folder))
    unseen = unseen_paths(script.facts.paths, spec, script.folder, folder, local=True)
    if unseen:
        found["// data"] = unseen
    return json.dumps(found, indent=2) + "\n"


def _about(script: Script) -> str:
    return (
        f"Made of {script.file.name}: {said_of(script)}. Entries whose names begin with // are"
        " comments. All other options have their defaults; docs/options.md lists them."
    )


def said_of(script: Script) -> str:
    """Return what the code says of its training, in words."""
    facts, named = script.facts, script.parameter_server
    if facts.named is not None:
        told = f"{facts.named.place} names {facts.named.name}"
    elif named is not None:
        told = f"{named.place} names {named.name}, among others"
    elif facts.cluster is not None:
        told = f"{facts.cluster.place} names {facts.cluster.name}"
    elif facts.is_plain:
        told = "it knows of no other task"
    else:
        told = f"how it is distributed cannot be told ({facts.hidden})"
    return f"{told}, {facts.keras_fit.place} calls fit" if facts.keras_fit is not None else told


def _service(script: Script, service: Mapping[str, Any]) -> dict[str, Any]:
    version = service.get("tensorflow_version", "")
    found: dict[str, Any] = {
        "// name": "The name of the service for status, logs and stop.",
        "name": service["name"],
        "// job_url": "The code, from where this file lies: every task gets a copy of it.",
        "job_url": service["job_url"],
        "job_name": service["job_name"],
        "// job_args": 'Arguments of the script, in sys.argv, e.g. ["--epochs", "3"].',
        **({"job_args": service["job_args"]} if "job_args" in service else {}),
        "// tensorflow_version": "Such as 2.21.0. Empty: the one that is installed here.",
        "tensorflow_version": version,
    }
    if (script.folder / _REQUIREMENTS).is_file():
        found["// requirements"] = "Installed for the tasks of this job before the first start."
        found["requirements"] = _REQUIREMENTS
    fit, several = script.facts.keras_fit, script.facts.strategies & _CLUSTER
    if fit is not None and several and not script.facts.legacy_keras:
        found["// legacy_keras"] = (
            f"{fit.place} calls fit under a strategy for several tasks: with TensorFlow 2.16 and"
            " later that needs true, and tf_keras installed."
        )
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        found["legacy_keras"] = numbers >= _KERAS_3
    return found


def _role(script: Script, group: str, given: Mapping[str, Any]) -> dict[str, Any]:
    sizes = {name: ParameterServer.model_fields[name].default for name in ("cpus", "mem")}
    why = _why_so_many(script, group)
    return {**({"// count": why} if why else {}), **given, "// mem": "In MB.", **sizes}


def _why_so_many(script: Script, group: str) -> str:
    strategy, named = script.facts.strategy, script.facts.strategies
    if group == "parameter_server":
        return "They hold the variables of the model between them."
    if group == "chief":
        return "It leads the training; ParameterServerStrategy needs one beside the workers."
    if strategy == PARAMETER_SERVER:
        return "They train; more can be added while the job runs."
    if MULTI_WORKER in named:
        return "Several train together, each on a part of each batch."
    if strategy == INDEPENDENT or script.facts.is_plain:
        return "Each of several would train by itself."
    return ""
