import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dcos_tensorflow.core.spec.service_spec import (
    Addressing,
    Containerizer,
    Fitness,
    OutcomePolicy,
    Strategy,
)
from dcos_tensorflow.options import json_schema
from dcos_tensorflow.options.catalogue import options
from dcos_tensorflow.options.schema import main, universe_config


def test_the_generated_files_are_up_to_date(repository: Path) -> None:
    assert main(["--root", str(repository), "--check"]) == 0


def test_the_schema_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_the_package_schema_is_of_draft_4() -> None:
    jsonschema.Draft4Validator.check_schema(universe_config())


def test_the_package_schema_is_one_that_universe_takes(
    universe_meta_schema: dict[str, Any],
) -> None:
    jsonschema.Draft4Validator(universe_meta_schema).validate(universe_config())


def test_the_package_schema_is_plain_ascii() -> None:
    assert json.dumps(universe_config(), ensure_ascii=False).isascii()


def test_the_package_schema_offers_every_option_that_a_template_can_pass() -> None:
    for path, option in options().items():
        below = universe_config()
        for name in path:
            below = below["properties"][name]
        assert below["type"] in ("string", "integer", "number", "boolean"), option.name


def test_every_option_says_what_it_means() -> None:
    assert [option.name for option in options().values() if not option.schema["description"]] == []


@pytest.mark.parametrize(
    "options_text",
    [
        '{"wroker": {}}',
        '{"worker": {"count": "2"}}',
        '{"worker": {"count": -1}}',
        '{"worker": {"cpus": 0}}',
        '{"gpu_worker": {"gpus": 0.5}}',
        '{"gpu_worker": {"port": null}}',
        '{"gang": {"hold_seconds": 0}}',
        '{"service": {"env": {"A": 1}}}',
        '{"service": {"strategy": "magic"}}',
    ],
)
@pytest.mark.parametrize("schema", [json_schema(), universe_config()], ids=["options", "package"])
def test_the_schemas_refuse_what_loading_refuses(options_text: str, schema: dict[str, Any]) -> None:
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft4Validator)
    assert not validator(schema).is_valid(json.loads(options_text))


@pytest.mark.parametrize(
    ("path", "enumeration"),
    [
        ("service.strategy", Strategy),
        ("service.outcome", OutcomePolicy),
        ("service.containerizer", Containerizer),
        ("cluster_spec.addressing", Addressing),
        ("placement.fitness", Fitness),
    ],
)
def test_choices_are_those_of_the_core(path: str, enumeration: Any) -> None:
    option = options()[tuple(path.split("."))]
    assert set(option.schema["enum"]) == {str(member) for member in enumeration}


def checkout(directory: Path) -> Path:
    (directory / "setup.cfg").write_text("")
    return directory


def test_the_command_writes_what_is_missing_and_then_finds_nothing_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ["--root", str(checkout(tmp_path))]
    assert main(root) == 0
    assert "wrote universe/config.json" in capsys.readouterr().out
    assert main([*root, "--check"]) == 0


def test_the_command_leaves_what_is_written_by_hand(tmp_path: Path) -> None:
    root = ["--root", str(checkout(tmp_path))]
    main(root)
    page = tmp_path / "docs" / "options.md"
    tables = page.read_text()
    page.write_text(f"# Options\n\n{tables}, changed")
    assert main(root) == 0
    assert page.read_text() == f"# Options\n\n{tables}"


def test_the_command_tells_of_a_stale_file_and_leaves_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ["--root", str(checkout(tmp_path))]
    main(root)
    stale = tmp_path / "universe" / "config.json"
    stale.write_text("{}")
    assert main([*root, "--check"]) == 1
    assert "out of date: universe/config.json" in capsys.readouterr().err
    assert stale.read_text() == "{}"


def test_the_command_writes_into_a_checkout_only(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["--root", str(tmp_path)])
