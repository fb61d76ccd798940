"""What is installed is locked, what is built is the same each time, and both are told."""

import configparser
import json
import os
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dcos_tensorflow.plugin.pack import build_plugin

ROOT = Path(__file__).resolve().parents[3]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
#: It lies in vendor/.
OURS = {"http-parser"}


def locked(path: Path) -> dict[str, str]:
    """Return the version of each distribution that a file locks for this Python."""
    found = {}
    for entry in path.read_text().replace("\\\n", " ").splitlines():
        requirement = Requirement(entry.partition(" --hash=")[0])
        if requirement.marker is None or requirement.marker.evaluate():
            (pin,) = requirement.specifier
            found[canonicalize_name(requirement.name)] = pin.version
    return found


def asked(section: str, key: str) -> list[Requirement]:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return [Requirement(line) for line in config[section][key].splitlines() if line]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_everything_that_is_locked_has_a_hash_and_comes_from_wherever_pip_asks(path: Path) -> None:
    for entry in path.read_text().replace("\\\n", " ").splitlines():
        assert re.fullmatch(
            r"[\w.-]+==\S+( ; [^-]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", entry
        ), entry
    assert "://" not in path.read_text()


@pytest.mark.parametrize(
    ("lock", "section", "key"),
    [
        ("runtime.lock", "options", "install_requires"),
        ("checks.lock", "options", "install_requires"),
        ("checks.lock", "options.extras_require", "test"),
    ],
)
def test_what_setup_cfg_asks_for_is_locked(lock: str, section: str, key: str) -> None:
    versions = locked(ROOT / "requirements" / lock)
    for requirement in asked(section, key):
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in {lock}: make lock"
        assert requirement.specifier.contains(version), f"make lock: {requirement} is {version}"


def test_what_runs_is_the_same_where_checks_are_installed_beside_it() -> None:
    runtime, checks = (
        locked(ROOT / "requirements" / f"{name}.lock") for name in ("runtime", "checks")
    )
    assert runtime.items() <= checks.items()


def test_two_builds_of_the_plugin_are_the_same_bytes(tmp_path: Path) -> None:
    first = build_plugin(tmp_path / "one.pyz").read_bytes()
    before = os.umask(0o027)
    try:
        second = build_plugin(tmp_path / "two.pyz").read_bytes()
    finally:
        os.umask(before)
    assert first == second


def test_the_bill_of_materials_names_every_part_with_its_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    import bill_of_materials

    names = ["PyJWT", "kazoo", "cryptography", "pydantic"]
    made = []
    for order in (names, names[::-1]):
        bill_of_materials.write(tmp_path, map(metadata.distribution, order))
        made.append([(tmp_path / name).read_bytes() for name in ("sbom.cdx.json", "LICENCES.txt")])
    assert made[0] == made[1]
    components = json.loads(made[0][0])["components"]
    python = [each["name"] for each in components if each["purl"].startswith("pkg:pypi/")]
    assert python == sorted(canonicalize_name(n) for n in names)
    assert all(each["licenses"][0]["license"]["name"] for each in components)
    assert b"Jos\xc3\xa9 Padilla" in made[0][1]
    javascript = {each["name"] for each in components if each["purl"].startswith("pkg:npm/")}
    assert javascript == {"htm", "preact", "uplot"}
    assert b"Jason Miller" in made[0][1]
