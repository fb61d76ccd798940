"""The descriptions of options that are checked in, all made from the models.

``config-schemas/options.schema.json`` (JSON Schema 2020-12) for editors and programs,
``universe/config.json`` (draft 4, as DC/OS wants it) and the table in ``docs/options.md``.
``python -m dcos_tensorflow.options.schema`` writes them, with ``--check`` it only says whether they
are up to date. Nothing imports it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dcos_tensorflow.options.schema_documents import generated_files


def main(arguments: list[str] | None = None) -> int:
    """Write the generated files, or check them. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m dcos_tensorflow.options.schema")
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
    for name, text in generated_files().items():
        path = root / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not parsed.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    if parsed.check and stale:
        print(
            f"out of date: {', '.join(stale)}; run python -m dcos_tensorflow.options.schema",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
