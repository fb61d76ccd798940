"""What known vulnerabilities do to lint, and what it says where no server can be asked."""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "packaging" / "audit.py"
CLEAN = {"name": "one", "version": "1.0", "vulns": []}
BROKEN = {
    "name": "two",
    "version": "2.0",
    "vulns": [{"id": "CVE-2026-1", "fix_versions": ["2.1"], "description": "it lets all in"}],
}
UNKNOWN = {"name": "three", "skip_reason": "Dependency not found on PyPI"}


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pip_audit(tmp_path: Path) -> Callable[[Any], str]:
    """Make a program in its place, which says what it was given."""

    def made(*parts: Any, status: int = 0) -> str:
        path = tmp_path / "pip-audit"
        text = json.dumps({"dependencies": parts, "fixes": []}) if parts else ""
        said = f"print({text!r}); print('no route to host', file=sys.stderr)"
        path.write_text(f"#!{sys.executable}\nimport sys\n{said}\nsys.exit({status})\n")
        path.chmod(0o755)
        return str(path)

    return made


def test_a_finding_fails_and_is_told(
    audit: ModuleType, pip_audit: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main([pip_audit(CLEAN, BROKEN, status=1), "a.lock"]) == 1
    assert capsys.readouterr().out == "two 2.0: CVE-2026-1, mended in 2.1\n"


def test_nothing_found_is_nothing_said(
    audit: ModuleType, pip_audit: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main([pip_audit(CLEAN), "a.lock", "--needed"]) == 0
    assert capsys.readouterr().out == ""


def test_without_an_answer_one_line_says_so_and_lint_goes_on(
    audit: ModuleType, pip_audit: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main([pip_audit(status=1), "a.lock"]) == 0
    assert capsys.readouterr().out == "a.lock is not audited: no route to host\n"


def test_what_nothing_is_known_of_is_not_taken_for_clean(
    audit: ModuleType, pip_audit: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main([pip_audit(CLEAN, UNKNOWN), "a.lock"]) == 0
    assert "of 1 of 2 requirements" in capsys.readouterr().out


@pytest.mark.parametrize("parts", [(), (CLEAN, UNKNOWN)], ids=["nobody", "not of all"])
def test_who_needs_to_know_is_told_by_the_status(
    audit: ModuleType, pip_audit: Any, parts: tuple[Any, ...]
) -> None:
    assert audit.main([pip_audit(*parts), "a.lock", "--needed"]) == 1


def test_a_missing_pip_audit_is_no_answer(audit: ModuleType, tmp_path: Path) -> None:
    assert audit.main([str(tmp_path / "none"), "a.lock"]) == 0
