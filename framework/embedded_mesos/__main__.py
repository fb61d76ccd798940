"""The command ``embedded-mesos``, and ``python -m embedded_mesos``."""

from __future__ import annotations

import sys
from pathlib import Path

from embedded_mesos.background_process import BackgroundProcessError
from embedded_mesos.serving import serve


def main(arguments: list[str]) -> int:
    """Run the cluster of a state dir."""
    if len(arguments) != 2 or arguments[0] != "serve":
        print("usage: python -m embedded_mesos serve STATE_DIR", file=sys.stderr)
        return 64
    try:
        serve(Path(arguments[1]))
    except (BackgroundProcessError, OSError) as error:
        print(f"the embedded cluster cannot start: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
