"""The file of teams: the guarantee, limits and rights of each, and the rules for all.

Read at the start of ``queue serve`` and again when it has changed; a file that is wrong then
changes nothing. Tokens lie in files of their own. For the queue of the DC/OS package the file is
made of the environment of the package's app.
"""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.registry import write_private
from dcos_tensorflow.client.secret_file import private_secret_in
from dcos_tensorflow.client.work_directory import WorkDirectory, make_folder
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.options.sections.images import DEFAULT_TENSORFLOW
from dcos_tensorflow.package import variables
from dcos_tensorflow.queue.model import Rules, TaskNeed, Team
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

_Part = Annotated[float, Field(ge=0.0, le=1.0)]
_Seconds = Annotated[float, Field(ge=0.0, le=10_000_000.0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SchedulerTask(_Section):
    """What the scheduler of a job takes of a machine, and how it comes there."""

    cpus: Annotated[float, Field(ge=0.01, le=64.0)] = 0.1
    #: MiB.
    mem: Annotated[int, Field(ge=64, le=65_536)] = 192
    #: Where the machines fetch dcos-tensorflow with its Python (``make package``); empty where it
    #: lies on each of them as on the queue's.
    archive: str = ""
    #: Its container's image; empty for none.
    image: str = ""
    #: The Python of its machine, where there is an archive and no image; empty for the one there.
    python: str = ""
    #: Its Mesos role.
    mesos_role: str = ""

    @property
    def disk(self) -> float:
        """Return the MiB of its sandbox: with an archive what that is, packed and unpacked."""
        return 512.0 if self.archive else 64.0

    @property
    def need(self) -> TaskNeed:
        """Return what it takes, as the queue counts."""
        return TaskNeed(math.ceil(self.cpus * 1000), self.mem)


class _TeamSection(_Section):
    guarantee: _Part = 0.0
    weight: Annotated[float, Field(gt=0.0, le=1_000_000.0)] = 1.0
    limit: _Part = 1.0
    machines: dict[str, list[str]] = {}
    images: list[str] = ["*"]
    secrets: list[str] = []
    mesos_role: str = ""
    token_file: str = ""
    settings: str = ""
    users: list[str] = []
    frozen: bool = False


class _RulesSection(_Section):
    half_life_seconds: _Seconds = Rules.half_life
    reclaim_after_seconds: _Seconds = Rules.reclaim_after
    patience_seconds: _Seconds = Rules.patience
    grace_seconds: _Seconds = Rules.grace
    least_run_seconds: _Seconds = Rules.least_run
    between_giving_way_seconds: _Seconds = Rules.between_giving_way
    drained: bool = False


class _DcosSection(_Section):
    keys: str = ""
    operators: list[str] = []


class _File(_Section):
    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] = "queue"
    teams: Annotated[dict[str, _TeamSection], Field(min_length=1)]
    rules: _RulesSection = _RulesSection()
    schedulers: SchedulerTask = SchedulerTask()
    dcos: _DcosSection = _DcosSection()
    capacity: dict[str, Any] = {}
    gpu_attribute: str = ""
    gpu_weights: dict[str, Annotated[float, Field(gt=0.0, le=1000.0)]] = {}


@dataclass(frozen=True)
class TeamUse:
    """What a team may use beside machines."""

    #: Patterns of images that its tasks may run, and of secrets that they may have.
    images: tuple[str, ...]
    secrets: tuple[str, ...]
    #: The Mesos role of its jobs; empty for what their options say.
    mesos_role: str
    #: The settings of its jobs' schedulers, as ``--config`` takes them; None for the queue's.
    settings: Path | None = None

    def refusal(self, spec: ServiceSpec, team: str) -> str:
        """Return why a job may not run for the team; empty where it may."""
        for role in spec.roles:
            image = role.container.image if role.container is not None else ""
            if image and not _is_among(image, self.images):
                return f"team {team} may not run the image {image}: {_told(self.images)}"
            for secret in role.secrets:
                if not _is_among(secret.source, self.secrets):
                    return f"team {team} may not use the secret {secret.source} ({secret.option})"
        if self.mesos_role and spec.mesos_role not in ("*", self.mesos_role):
            return f"team {team} has the Mesos role {self.mesos_role}, not {spec.mesos_role}"
        return ""


@dataclass(frozen=True)
class Membership:
    """Who belongs to which team."""

    #: The token of each team that has one.
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: The team of each user of DC/OS that is a member of one.
    users: Mapping[str, str] = field(default_factory=dict)
    #: Users of DC/OS who may do everything.
    operators: frozenset[str] = frozenset()
    #: Where the cluster's keys are, by which its users are known; empty for no such users.
    keys: str = ""


@dataclass(frozen=True)
class Teams:
    """All that the file says."""

    name: str
    teams: tuple[Team, ...]
    uses: Mapping[str, TeamUse]
    rules: Rules
    #: Of which attribute a machine's kind of GPU is the value, and what one of each counts.
    gpu_attribute: str
    gpu_weights: Mapping[str, float]
    #: What the schedulers of jobs take.
    scheduler: SchedulerTask
    membership: Membership
    #: Machines to buy for what waits: the section of options; empty for none.
    capacity: Mapping[str, Any]


def read(path: Path) -> Teams:
    """Return what a file of teams says. Raises UsageError with all that is wrong with it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    return of_document(document, path)


def of_document(document: Any, path: Path) -> Teams:
    """Return what a document says that stands at ``path``. Raises UsageError."""
    try:
        found = _File.model_validate(document)
    except ValidationError as error:
        raise UsageError("\n".join(_problems(path, error))) from None
    guaranteed = sum(section.guarantee for section in found.teams.values())
    if guaranteed > 1.0 + 1e-9:
        raise UsageError(
            f"{path}: the teams are guaranteed {100 * guaranteed:.0f} % of the cluster together;"
            " there is no more than 100 %."
        )
    tokens = {}
    users = _users(path, found)
    for name, section in found.teams.items():
        if section.guarantee > section.limit:
            raise UsageError(
                f"{path}: teams.{name}.limit is {section.limit:g}, less than its guarantee of"
                f" {section.guarantee:g}."
            )
        if section.token_file:
            tokens[name] = _token(path, name, section.token_file)
    if len(set(tokens.values())) < len(tokens):
        raise UsageError(f"{path}: two teams have the same token.")
    return Teams(
        name=found.name,
        teams=tuple(_team(name, section) for name, section in found.teams.items()),
        uses={
            name: TeamUse(
                tuple(one.images),
                tuple(one.secrets),
                one.mesos_role,
                path.parent / one.settings if one.settings else None,
            )
            for name, one in found.teams.items()
        },
        rules=Rules(
            **{name.removesuffix("_seconds"): value for name, value in found.rules},
            grows=bool(found.capacity),
        ),
        gpu_attribute=found.gpu_attribute,
        gpu_weights=found.gpu_weights,
        scheduler=found.schedulers,
        membership=Membership(
            tokens, users, frozenset(found.dcos.operators), _keys(path, found.dcos.keys)
        ),
        capacity=found.capacity,
    )


def _team(name: str, section: _TeamSection) -> Team:
    where = tuple((attribute, tuple(values)) for attribute, values in section.machines.items())
    return Team(
        name, section.guarantee, section.weight, section.limit, where, frozen=section.frozen
    )


def _token(path: Path, team: str, file: str) -> str:
    return private_secret_in(str(path.parent / file), f"{path}: teams.{team}.token_file")


def _users(path: Path, found: _File) -> dict[str, str]:
    """Return the team of each user of DC/OS. Raises UsageError."""
    users: dict[str, str] = {}
    for team, section in found.teams.items():
        for user in section.users:
            other = users.setdefault(user, team)
            if other != team:
                raise UsageError(f"{path}: {user} is in team {other} and in team {team}.")
    if (users or found.dcos.operators) and not found.dcos.keys:
        raise UsageError(
            f"{path}: users of DC/OS are known by the cluster's keys: name their place in dcos.keys"
            " (https://leader.mesos/acs/api/v1/auth/jwks, or a file)."
        )
    return users


def _keys(path: Path, place: str) -> str:
    return place if not place or "://" in place else str(path.parent / place)


def _problems(path: Path, error: ValidationError) -> Iterable[str]:
    for one in error.errors():
        place = ".".join(str(part) for part in one["loc"])
        told = f"{path}: {place or 'the file'}: {one['msg'][:1].lower()}{one['msg'][1:]}"
        if one["type"] == "extra_forbidden":
            known = _known_beside(one["loc"])
            near = get_close_matches(str(one["loc"][-1]), known, n=1)
            meant = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            yield f"{path}: {place} is not known; {meant}"
            continue
        given: Any = one.get("input")
        shown = "" if isinstance(given, dict | list) else f" (given: {json.dumps(given)})"
        yield f"{told}{shown}."


def _known_beside(place: tuple[int | str, ...]) -> list[str]:
    sections: dict[str, type[_Section]] = {
        "teams": _TeamSection,
        "rules": _RulesSection,
        "schedulers": SchedulerTask,
        "dcos": _DcosSection,
    }
    section = sections.get(str(place[0]), _File) if len(place) > 1 else _File
    return list(section.model_fields)


def _is_among(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _told(patterns: tuple[str, ...]) -> str:
    return f"allowed are {', '.join(patterns)}" if patterns else "it may run none"


def teams_file_of(environ: Mapping[str, str], work: WorkDirectory) -> Path:
    """Write the file of teams that a package's app says, and return it.

    Raises UsageError. What it holds is checked as that of any such file.
    """
    options = variables.options_in(environ)
    service = {name: str(value) for name, value in options.get("service", {}).items()}
    try:
        told = read_json(options.get("queue", {}).get("teams", ""))
        of_schedulers = dict(told.get("schedulers", {}))
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageError(
            f"Which teams? Name their file; in the package queue.teams is it as JSON text: {error}."
        ) from error
    python, role = service.get("python", ""), service.get("mesos_role", "*")
    version = service.get("tensorflow_version") or DEFAULT_TENSORFLOW
    images = variables.images_in(environ).get(version)
    schedulers = {
        "archive": environ.get(variables.ARCHIVE_VARIABLE, ""),
        "image": images.cpu if images is not None and not python else "",
        "python": python,
        "mesos_role": role if role != "*" else "",
    }
    document = {
        # A folder's name, and part of a task's.
        "name": service.get("name", "").strip("/").replace("/", "-"),
        **told,
        "schedulers": {**schedulers, **of_schedulers},
    }
    make_folder(work.path)
    path = work.path / "teams.json"
    write_private(path, json.dumps(document, indent=2) + "\n")
    return path
