"""The descriptions of options that are checked in, all made from the models.

``config-schemas/options.schema.json`` (JSON Schema 2020-12) for editors and programs,
``universe/config.json`` (draft 4, as DC/OS wants it) and the table in ``docs/options.md``.
``python -m dcos_tensorflow.options.schema`` writes them, with ``--check`` it only says whether they
are up to date. ``deploy.settings_schema`` does the same for the scheduler's settings.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from dcos_tensorflow.options.schema_documents import generated_files


def main(arguments: list[str] | None = None) -> int:
    """Write the files made from the option models, or check them. Return the exit code."""
    return write_or_check("dcos_tensorflow.options.schema", generated_files(), arguments)


def write_or_check(
    module: str, files: Mapping[str, str | Callable[[str], str]], arguments: list[str] | None
) -> int:
    """Be the command line of ``module``, which generates ``files``.

    Each is its text by its path, or what makes a new text of the present one. Paths are below the
    repository. Return the exit code: 1 when ``--check`` finds a difference.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(__file__).resolve().parents[3],
        help="the repository (default: the one this file lies in)",
    )
    parsed = parser.parse_args(arguments)
    root: Path = parsed.root
    if not (root / "setup.cfg").is_file():
        parser.error(f"{root} is no checkout of dcos-tensorflow: give it with --root")
    stale = []
    for name, made in files.items():
        path = root / name
        present = path.read_text(encoding="utf-8") if path.is_file() else ""
        text = made if isinstance(made, str) else made(present)
        if present == text:
            continue
        stale.append(name)
        if not parsed.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    if parsed.check and stale:
        print(f"out of date: {', '.join(stale)}; run python -m {module}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
