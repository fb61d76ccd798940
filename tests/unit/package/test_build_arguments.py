"""Where ``make package`` lets a package be served from."""

from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "packaging"))
    import build

    return build


def test_a_slash_at_the_end_makes_no_difference(build: ModuleType) -> None:
    given = build._arguments(["--artifact-url", "https://example.org/1/"])
    assert given.artifact_url == "https://example.org/1"


def test_a_folder_of_this_machine_has_no_server_and_needs_to_be_the_outputs(
    build: ModuleType, tmp_path: Path
) -> None:
    given = build._arguments(["--artifact-url", tmp_path.as_uri(), "--output", str(tmp_path)])
    assert given.artifact_url == tmp_path.as_uri()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://example.org", "must be http://, https:// or file://"),
        ("dist/package", "must be http://, https:// or file://"),
        ("file:///elsewhere", "no server serves a file:// address"),
    ],
)
def test_an_address_from_which_nothing_can_be_had_is_refused(
    build: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    url: str,
    told: str,
) -> None:
    with pytest.raises(SystemExit):
        build._arguments(["--artifact-url", url, "--output", str(tmp_path)])
    assert told in " ".join(capsys.readouterr().err.split())
