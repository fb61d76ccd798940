"""What beta-tensorflow users have today is accepted and means what it meant."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from dcos_tensorflow.core.spec.service_spec import TaskRole
from dcos_tensorflow.options import load, service_spec
from dcos_tensorflow.options.schema import json_schema, universe_config
from samples.published_styles import STYLES

#: TensorFlow 1.5 in an image whose Python runs no task.
OTHER_DEFAULTS = {(f"service.{name}", "default") for name in ("tf_image", "gpu_tf_image")}


def leaves(
    schema: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, below in schema["properties"].items():
        if "properties" in below:
            yield from leaves(below, (*path, name))
        else:
            yield ".".join((*path, name)), below


def defaults(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        name: defaults(below) if "properties" in below else below["default"]
        for name, below in schema["properties"].items()
        if "properties" in below or "default" in below
    }


def written_out(options: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults of options that are given by their dotted names."""
    found: dict[str, Any] = {}
    for path, facts in options.items():
        if "default" in facts:
            *groups, name = path.split(".")
            group = found
            for each in groups:
                group = group.setdefault(each, {})
            group[name] = facts["default"]
    return found


def merged(under: Any, over: Any) -> Any:
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    return {
        **under,
        **{name: merged(under.get(name), value) for name, value in over.items()},
    }


@pytest.mark.parametrize("style", STYLES)
def test_options_of_the_published_package_are_accepted_unchanged(style: str) -> None:
    options, tasks = STYLES[style]
    assert service_spec(load(options)).task_names() == tasks


@pytest.mark.parametrize("style", STYLES)
def test_options_of_the_published_package_fit_both_schemas(style: str) -> None:
    options, _ = STYLES[style]
    jsonschema.validate(options, json_schema())
    # Cosmos fills in the defaults before it validates.
    filled = merged(defaults(universe_config()), options)
    jsonschema.validate(filled, universe_config(), cls=jsonschema.Draft4Validator)


def test_every_published_option_keeps_its_name_type_and_default(
    published: dict[str, Any],
) -> None:
    ours = dict(leaves(universe_config()))
    for path, theirs in published.items():
        for key in ("type", "default", "enum", "title", "media"):
            if key in theirs and (path, key) not in OTHER_DEFAULTS:
                assert ours[path].get(key) == theirs[key], f"{path}: {key}"
        assert ("default" in ours[path]) == ("default" in theirs), path


def test_the_published_defaults_written_out_are_accepted(published: dict[str, Any]) -> None:
    options = written_out(published)
    options["service"]["job_name"] = "default"
    spec = service_spec(load(options))
    assert spec.role(TaskRole.PS) is not None
    images = {name: options["service"][name] for name in ("tf_image", "gpu_tf_image")}
    least = {"service": {"job_name": "default", **images}}
    assert spec == service_spec(load(least, published_defaults=True))
