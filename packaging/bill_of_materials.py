"""What the scheduler's artifact is made of: a CycloneDX document, and the licences in one file.

Called by ``bundle.py`` for what it has copied. The dashboard's libraries are of it, as npm's lock
and their licences beside the dashboard tell. The same parts give the same bytes: no time and no
number that is drawn is in it.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

SBOM = "sbom.cdx.json"
LICENCES = "LICENCES.txt"
#: How files are called that hold a licence, or what has to be said with one.
_NAMES = ("licen", "copying", "notice", "authors")
_ROOT = Path(__file__).resolve().parent.parent
_NPM_LOCK = _ROOT / "packaging" / "dashboard" / "package-lock.json"
_NPM_LICENCES = (
    _ROOT / "framework" / "dcos_tensorflow" / "api" / "dashboard" / "vendored" / "licences.txt"
)


def write(folder: Path, distributions: Iterable[importlib.metadata.Distribution]) -> None:
    """Write both files to ``folder``."""
    found = sorted(distributions, key=lambda each: canonicalize_name(each.metadata["Name"]))
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": [*(_component(each) for each in found), *_javascript()],
    }
    (folder / SBOM).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    texts = [*map(_licence_text, found), _NPM_LICENCES.read_text(encoding="utf-8")]
    (folder / LICENCES).write_text("\n".join(texts), encoding="utf-8")


def _javascript() -> Iterator[dict[str, Any]]:
    """Yield the libraries that the dashboard brings along; those of its tests are no part of it."""
    locked = json.loads(_NPM_LOCK.read_text(encoding="utf-8"))["packages"]
    for name in sorted(locked[""]["dependencies"]):
        package = locked[f"node_modules/{name}"]
        yield {
            "type": "library",
            "bom-ref": f"npm:{name}@{package['version']}",
            "name": name,
            "version": package["version"],
            "purl": f"pkg:npm/{name}@{package['version']}",
            "licenses": [{"license": {"name": package["license"]}}],
        }


def _component(distribution: importlib.metadata.Distribution) -> dict[str, Any]:
    name = canonicalize_name(distribution.metadata["Name"])
    component = {
        "type": "library",
        "bom-ref": f"{name}=={distribution.version}",
        "name": name,
        "version": distribution.version,
        "purl": f"pkg:pypi/{name}@{distribution.version}",
    }
    told = _licence(distribution)
    return {**component, "licenses": [{"license": {"name": told}}]} if told else component


def _licence(distribution: importlib.metadata.Distribution) -> str:
    """Return the licence's name, by any of the three fields that metadata has had for it."""
    metadata = distribution.metadata
    classified = [
        each.rpartition(" :: ")[2]
        for each in metadata.get_all("Classifier") or ()
        if each.startswith("License :: ")
    ]
    short = (metadata["License"] or "").strip()
    plain = short if short and "\n" not in short else ""
    return metadata["License-Expression"] or ", ".join(classified) or plain


def _licence_text(distribution: importlib.metadata.Distribution) -> str:
    head = f"{distribution.metadata['Name']} {distribution.version}: {_licence(distribution)}"
    return "\n".join([head, "=" * len(head), *_texts(distribution), ""])


def _texts(distribution: importlib.metadata.Distribution) -> Iterator[str]:
    for file in sorted(map(str, distribution.files or ())):
        name = Path(file).name.lower()
        if ".dist-info/" in file and name.startswith(_NAMES):
            text = Path(str(distribution.locate_file(file))).read_text("utf-8", "replace")
            yield text.strip() + "\n"
