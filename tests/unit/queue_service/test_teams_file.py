"""The file of teams: what it says, and how each mistake in it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.options import load, service_spec
from dcos_tensorflow.queue_service import teams_file
from dcos_tensorflow.queue_service.teams_file import Teams


def written(folder: Path, **document: Any) -> Path:
    path = folder / "teams.json"
    path.write_text(json.dumps(document))
    return path


def read(folder: Path, **document: Any) -> Teams:
    return teams_file.read(written(folder, **document))


def test_a_team_has_what_the_file_says(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        teams={"red": {"guarantee": 0.5, "limit": 0.8, "machines": {"rack": ["r1", "r2"]}}},
        rules={"reclaim_after_seconds": 60.0},
    )
    (team,) = found.teams
    assert (team.guarantee, team.limit, team.where) == (0.5, 0.8, (("rack", ("r1", "r2")),))
    assert found.rules.reclaim_after == 60.0


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"teams": {}}, "teams"),
        ({"teams": {"red": {"guarante": 0.5}}}, "teams.red.guarante is not known; did you mean"),
        ({"teams": {"red": {"guarantee": 2.0}}}, "teams.red.guarantee"),
        ({"teams": {"red": {"guarantee": 0.7}, "blue": {"guarantee": 0.7}}}, "140 %"),
        ({"teams": {"red": {"guarantee": 0.5, "limit": 0.2}}}, "teams.red.limit"),
        ({"teams": {"red": {}}, "rules": {"half_life": 3}}, "rules.half_life is not known"),
        ({"teams": {"red": {}}, "gpu_weights": {"v100": -1.0}}, "gpu_weights.v100"),
        ({"teams": {"red": {"users": ["al"]}}}, "dcos.keys"),
        ({"teams": {"red": {"users": ["al"]}, "blue": {"users": ["al"]}}}, "in team red and in"),
    ],
)
def test_a_mistake_is_told_by_its_path(tmp_path: Path, document: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, **document)
    assert told in str(error.value)


def test_a_token_lies_beside_the_file_and_is_the_owners_alone(tmp_path: Path) -> None:
    token = tmp_path / "red.token"
    token.write_text("a-token-of-the-red-team\n")
    token.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read(tmp_path, teams={"red": {"token_file": "red.token"}})
    token.chmod(0o600)
    found = read(tmp_path, teams={"red": {"token_file": "red.token"}})
    assert found.membership.tokens == {"red": "a-token-of-the-red-team"}
    assert "a-token" not in repr(found)


def test_two_teams_may_not_have_the_same_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("the-very-same-token")
    (tmp_path / "token").chmod(0o600)
    with pytest.raises(UsageError, match="the same token"):
        read(tmp_path, teams={"red": {"token_file": "token"}, "blue": {"token_file": "token"}})


@pytest.mark.parametrize(
    ("service", "told"),
    [
        ({"tf_image": "evil/image:1"}, "the image evil/image:1"),
        ({"mesos_role": "blue"}, "the Mesos role"),
        ({}, ""),
    ],
)
def test_a_team_may_use_what_it_is_allowed(
    tmp_path: Path, service: dict[str, Any], told: str
) -> None:
    uses = read(tmp_path, teams={"red": {"images": ["tensorflow/*"], "mesos_role": "red"}}).uses[
        "red"
    ]
    spec = service_spec(load({"service": {"name": "job", "job_cmd": "true", **service}}))
    assert told in uses.refusal(spec, "red")
    assert bool(told) is bool(uses.refusal(spec, "red"))
