"""``make package``: all that a cluster needs of the package, in one folder to be served.

Builds the scheduler's artifact, the plugin and the icons, fills their addresses and checksums into
the package files, checks these by Universe's rules, writes them as a repository that
``dcos package repo add`` takes, and at last runs the artifacts in an empty directory with an empty
environment. Nothing is left in the folder when any of that fails.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import bundle
import icons
import smoke

from dcos_tensorflow import __version__
from dcos_tensorflow.package.definition import (
    FILES,
    Package,
    PackageError,
    read_folder,
    repository_document,
)
from dcos_tensorflow.package.rules import problems
from dcos_tensorflow.plugin.pack import build_plugin

ROOT = Path(__file__).resolve().parents[1]
SCHEDULER = "dcos-tensorflow-scheduler-linux-x86-64.tar.gz"
PLUGIN = "dcos-tensorflow-cli.pyz"
REPOSITORY = "stub-universe-tensorflow.json"
CHECKSUMS = "SHA256SUMS"
#: Addresses on this machine: for the local DC/OS alone.
_HERE = "file://"
_SCHEMAS = {
    "package-schema.json": "package.json",
    "config-schema.json": "config.json",
    "v3-resource-schema.json": "resource.json",
}


def main(arguments: list[str] | None = None) -> int:
    """Build the package. Return the exit code."""
    given = _arguments(arguments)
    output: Path = given.output.absolute()
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".package-", dir=output.parent) as scratch:
        folder = Path(scratch) / output.name
        folder.mkdir()
        try:
            build(given, folder, Path(scratch))
        except (bundle.BuildError, PackageError, smoke.SmokeError) as error:
            print(f"Error: {error}", file=sys.stderr)
            return 1
        if output.exists():
            shutil.rmtree(output)
        folder.rename(output)
    if given.artifact_url.startswith(_HERE):
        print(f"The package is in {output}, for the local DC/OS of this machine only:")
    else:
        print(f"The package is in {output}. Serve it at {given.artifact_url}, then:")
    print(f"  dcos package repo add --index=0 tensorflow {given.artifact_url}/{REPOSITORY}")
    return 0


def build(given: argparse.Namespace, folder: Path, scratch: Path) -> None:
    """Write the package to ``folder``. Raises BuildError, PackageError, SmokeError."""
    time = _time()
    unpacked = scratch / "bundle"
    versions = bundle.build(unpacked)
    bundle.pack(unpacked, folder / SCHEDULER, time)
    _say(f"{SCHEDULER}: Python {versions['python']}, {len(versions) - 2} distributions", folder)
    build_plugin(folder / PLUGIN)
    icons.draw(folder)
    package = _package(given, folder, time)
    _check(package, given.schemas, local=given.artifact_url.startswith(_HERE))
    _write(package, folder, time)
    smoke.check(folder / SCHEDULER, folder / PLUGIN, folder / REPOSITORY, __version__)
    print("  the artifacts run in an empty directory with an empty environment")
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    sums = "".join(f"{_sha256(folder / name)}  {name}\n" for name in names)
    (folder / CHECKSUMS).write_text(sums, encoding="ascii")


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="packaging/build.py", description=__doc__)
    parser.add_argument("--artifact-url", required=True, help="where the folder will be served")
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "package")
    parser.add_argument(
        "--upgrades-from", default="*", help="versions, by commas, that can be upgraded to this one"
    )
    parser.add_argument(
        "--downgrades-to", default="*", help="versions, by commas, that this one can go back to"
    )
    parser.add_argument("--schemas", type=Path, help="folder of Universe's schemas, to check by")
    given = parser.parse_args(arguments)
    if not given.artifact_url.startswith(("http://", "https://", _HERE)):
        parser.error(
            f"--artifact-url must be http://, https:// or file://, not {given.artifact_url!r}"
        )
    given.artifact_url = given.artifact_url.rstrip("/")
    output = given.output.absolute().as_uri()
    if given.artifact_url.startswith(_HERE) and given.artifact_url != output:
        parser.error(
            f"--artifact-url is {given.artifact_url}, and the files will be at {output}: no server"
            " serves a file:// address, so both must be the same"
        )
    return given


def _time() -> int:
    """Return the time that all files get: SOURCE_DATE_EPOCH, else that of the last commit."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    told = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if told.returncode:
        raise bundle.BuildError("this is no git checkout: set SOURCE_DATE_EPOCH")
    return int(told.stdout)


def _package(given: argparse.Namespace, folder: Path, time: int) -> Package:
    places = {
        "package-version": __version__,
        "artifact-dir": given.artifact_url,
        f"sha256:{PLUGIN}": _sha256(folder / PLUGIN),
    }
    package = read_folder(ROOT / "universe", places)
    description = {
        **package.description,
        "upgradesFrom": _versions(given.upgrades_from),
        "downgradesTo": _versions(given.downgrades_to),
        "lastUpdated": time,
    }
    return replace(package, description=description)


def _versions(text: str) -> list[str]:
    return [version.strip() for version in text.split(",") if version.strip()]


def _check(package: Package, schemas: Path | None, *, local: bool) -> None:
    found = list(problems(package, local=local))
    if schemas is not None:
        found += _by_schemas(package, schemas)
    if found:
        raise PackageError("the package breaks Universe's rules:\n  " + "\n  ".join(found))
    print("  the package files keep Universe's rules")


def _by_schemas(package: Package, schemas: Path) -> list[str]:
    import jsonschema

    parts: Mapping[str, object] = {
        "package.json": package.description,
        "config.json": package.config,
        "resource.json": package.resource,
    }
    found = []
    for schema, name in _SCHEMAS.items():
        try:
            validator = jsonschema.Draft4Validator(json.loads((schemas / schema).read_text()))
        except (OSError, ValueError) as error:
            raise PackageError(f"{schemas / schema}: {error}") from error
        found += [f"{name}: {error.message}" for error in validator.iter_errors(parts[name])]
    return found


def _write(package: Package, folder: Path, time: int) -> None:
    """Write the repository, and the files as they would be handed to Universe."""
    document = repository_document(package, last_updated=time)
    (folder / REPOSITORY).write_text(json.dumps(document, indent=2) + "\n", encoding="ascii")
    (folder / "universe").mkdir()
    texts = (package.description, package.config, package.template, package.resource)
    for name, part in zip(FILES, texts, strict=True):
        text = part if isinstance(part, str) else json.dumps(part, indent=2) + "\n"
        (folder / "universe" / name).write_text(text, encoding="ascii")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _say(text: str, folder: Path) -> None:
    size = (folder / SCHEDULER).stat().st_size / 1e6
    print(f"  {text}, {size:.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
