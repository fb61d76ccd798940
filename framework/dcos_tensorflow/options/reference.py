"""The reference page ``docs/options.md``, written from the models by ``options.schema``."""

from __future__ import annotations

import json
from collections.abc import Iterable

from dcos_tensorflow.options import catalogue
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.role_models import RoleSection, described

_HEAD = """\
# Options

An options file is one JSON object. Everything but the job may be left out: what is not given has
the default below, and a name that is not listed here is an error. The least that runs is

```json
{"service": {"job_url": "mnist.zip", "job_name": "mnist"}}
```

`dcos-tensorflow validate OPTIONS.json` says everything that is wrong with a file at once.
`--set path=value` lays a value over the file, e.g. `--set worker.count=2`. The value is read as
JSON where it is JSON and the option is not text, and is taken as it is otherwise.
`config-schemas/options.schema.json` is the same as this page for editors and programs.

Memory and disk are in megabytes, times in seconds, ports from 1 to 65535 with 0 for any. Options
of the published beta-tensorflow package have the name, the type and the default they have there.

Placement constraints come in three spellings: `["hostname", "UNIQUE"]`,
`[["hostname", "UNIQUE"], ["rack", "LIKE", "r[12]"]]` and `hostname:UNIQUE,rack:LIKE:r[12]`, where
`\\:` and `\\,` are a plain colon and comma. Each is text, inside the JSON of the options. The field
is `hostname`, `@zone`, `@region` or an attribute of the agents. Operators, in any case: `UNIQUE`
(no value), `IS`, `IS_NOT` (a value), `LIKE`, `UNLIKE` (a regular expression), `MAX_PER` (a number),
`CLUSTER` (a value or nothing), `GROUP_BY` (a number or nothing).

An environment (`env`) is an object of texts. Where only text can be given, as in a DC/OS package,
it is JSON text of such an object; `service.job_uris` and `data` likewise are lists or JSON text of
them. So are `secrets` and `rlimits`.
Variables of the scheduler's own environment reach tasks too: `TASKCFG_ALL_X` is `X` in all tasks,
`TASKCFG_<ROLE>_X` in the tasks of one role (`PS`, `CHIEF`, `WORKER`, `GPU_WORKER`, `EVALUATOR`,
`TENSORBOARD`). Where several give the same variable, the last of these wins: `service.env`, the
role's `env`, `TASKCFG_ALL_*`, `TASKCFG_<ROLE>_*`.

Rules that span several options:

* Exactly one of `service.job_name` and `service.job_cmd` is set.
* At least one task trains: `chief.count`, `worker.count` and `gpu_worker.count` are not all 0.
* `service.strategy` `parameter_server` needs a chief, parameter servers and workers, and the
  outcome `chief`; `multi_worker` and `independent` have no parameter servers.
* `worker.min_count` and `gpu_worker.min_count` are not above the `count`; the task whose end is the
  job's end (the chief, else worker 0) cannot be done without, and a ParameterServerStrategy keeps a
  worker beside the chief.
* `service.tensorflow_version` chooses the images of tasks whose image is not named otherwise. In
  the DC/OS package it is `2.21.0` when it is left out, and only versions that the package has
  images of can be chosen.
* GPU workers have at least one GPU each, and GPUs need the `mesos` containerizer.
* `cluster_spec.addressing` `dns` needs ports that are not 0.
* The addresses of all members fit into `TF_CONFIG`, one variable of at most 131,072 bytes: about
  5,400 by IPv4 address, 2,300 by DNS name. Environment and command of a task have at most 114,688
  bytes together, which is what Mesos can hand on, or 1.7 MB with the `docker` containerizer.
* `service.virtual_network_enabled` needs a `virtual_network_name`; what a network means for ports
  and names is told in `docs/networks.md`.
* The longest of several waits is not shorter than the first.
* What is kept in S3 is told in `docs/checkpoints.md`. `checkpoints.initial_uri` needs checkpoints
  there. `s3.credentials` names where the keys are: one of `env`, `file` and `secret`, or nothing. A
  key itself stands nowhere in the options; what looks like one is refused.
* Where secrets come from and where tasks find them is told in `docs/secrets.md`. Each has a
  `source` and either `env` or `file`; they need the `mesos` containerizer.
* A limit in `rlimits` has both `soft` and `hard`, or neither, which is no limit.
* With a `persistent_volume` and `service.mesos_role` `*`, which cannot reserve anything, the Mesos
  role is `<name of the service>-role`.
* No two entries of `data` are put at the same place, nor one within the other.

Coming from the beta-tensorflow package, whose options files work unchanged but for this:

* A name that the package did not know, which it passed over in silence, is an error.
* Without `job_url` and `job_name` the package ran an example of its own; here that is an error.
* `gcs_key` and `mesos_api_version` `V0` are refused, with a message that says what to do instead.
* `disk` and `disk_type` are a persistent volume only with `persistent_volume`, not always: a volume
  ties its task to one machine (`docs/volumes.md`).
"""

_TABLE_HEAD = "| option | default | allowed | meaning |\n|---|---|---|---|\n"

_ROLES_HEAD = """\
## Roles

The kinds of tasks:

{roles}

An option is written with its role, as in `worker.count`. Under each role stands its default, which
may be `none`; a row is not about the roles that have `-` in it.
"""
#: What a task and its role are called where all roles are meant.
_ANY_ROLE = {
    "one": "task",
    "many": "tasks of the role",
    "whose": "tasks of the role",
    "article": "a",
}


def reference_page() -> str:
    """Return the page as Markdown."""
    parts = [
        "<!-- Written by python -m dcos_tensorflow.options.schema from the option models. -->\n",
        _HEAD,
    ]
    roles = {
        name: field.annotation
        for name, field in Options.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, RoleSection)
    }
    for section in catalogue.groups()[()]:
        if section in roles:
            if section == next(iter(roles)):
                parts.append(_roles_table(roles))
            continue
        description = catalogue.resolved_schema()["properties"][section]["description"]
        rows = [_row(option) for path, option in catalogue.options().items() if path[0] == section]
        parts.append(f"## {section}\n\n{description}\n\n{_TABLE_HEAD}{''.join(rows)}")
    return "\n".join(parts)


def _roles_table(roles: dict[str, type[RoleSection]]) -> str:
    """Return the options of all roles in one table: a column for the default of each role."""
    kinds: dict[tuple[str, str, str], dict[str, catalogue.Option]] = {}
    for role, model in roles.items():
        for name, field in model.model_fields.items():
            option = catalogue.options()[role, name]
            meaning = field.description or option.schema["description"]
            kinds.setdefault((name, option.allowed, meaning), {})[role] = option
    # Rows of one name stand together, in the order in which the names are first met.
    places = list(dict.fromkeys(name for name, _, _ in kinds))
    rows = [("option", *roles, "allowed", "meaning"), ("---",) * (len(roles) + 3)]
    for kind in sorted(kinds, key=lambda kind: places.index(kind[0])):
        name, allowed, meaning = kind
        found = kinds[kind]
        defaults = (_default(found[role]) or "none" if role in found else "-" for role in roles)
        alone = next(iter(found.values())).schema["description"] if len(found) == 1 else ""
        rows.append((f"`{name}`", *defaults, allowed, alone or described(meaning, _ANY_ROLE)))
    groups = catalogue.resolved_schema()["properties"]
    about = "\n".join(f"* `{role}`: {groups[role]['description']}" for role in roles)
    return _ROLES_HEAD.format(roles=about) + "\n" + "".join(map(_cells, rows))


def _default(option: catalogue.Option) -> str:
    return f"`{json.dumps(option.schema['default'])}`" if "default" in option.schema else ""


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _row(option: catalogue.Option) -> str:
    meaning = option.schema["description"]
    return _cells((f"`{option.name}`", _default(option), option.allowed, meaning))
