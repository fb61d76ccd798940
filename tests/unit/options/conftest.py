"""What tests of the options share: the least that runs, and the published package."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from data_files import PUBLISHED_OPTIONS, of_others
from dcos_tensorflow.options import OptionsError, load

REPOSITORY = Path(__file__).resolve().parents[3]


def lines(error: OptionsError) -> list[str]:
    return [str(problem) for problem in error.problems]


@pytest.fixture
def repository() -> Path:
    return REPOSITORY


@pytest.fixture
def runnable() -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return options with a job_name, unless the given ones bring code themselves."""

    def complete(options: Mapping[str, Any]) -> dict[str, Any]:
        service = options.get("service", {})
        if isinstance(service, dict) and not {"job_name", "job_cmd"} & set(service):
            return {**options, "service": {**service, "job_name": "train"}}
        return dict(options)

    return complete


@pytest.fixture
def problems(runnable: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Callable[..., list[str]]:
    """Return the lines that options are refused with."""

    def refuse(options: Mapping[str, Any], *overrides: str) -> list[str]:
        with pytest.raises(OptionsError) as refused:
            load(runnable(options), overrides=overrides)
        return lines(refused.value)

    return refuse


@pytest.fixture
def published() -> dict[str, Any]:
    """Return the options of the published beta-tensorflow package by their dotted names."""
    options: dict[str, Any] = json.loads(PUBLISHED_OPTIONS.read_text())
    return options


@pytest.fixture
def universe_meta_schema() -> dict[str, Any]:
    """Return Universe's schema for config.json files."""
    path = of_others("universe/schema/config-schema.json")
    schema: dict[str, Any] = json.loads(path.read_text())
    return schema
