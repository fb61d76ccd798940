"""The process behind ``daemon``: ``python -m dcos_tensorflow.local serve STATE_DIR``."""

from __future__ import annotations

import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run the cluster of a state dir."""
    if len(arguments) != 2 or arguments[0] != "serve":
        print("usage: python -m dcos_tensorflow.local serve STATE_DIR", file=sys.stderr)
        return 64
    from dcos_tensorflow.local.background_process import BackgroundProcessError
    from dcos_tensorflow.local.serving import serve

    try:
        serve(Path(arguments[1]))
    except (BackgroundProcessError, OSError) as error:
        print(f"the embedded cluster cannot start: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
