"""The process behind ``daemon``: ``python -m embedded_mesos serve STATE_DIR``."""

from __future__ import annotations

import sys
from pathlib import Path

from dcos_tensorflow.garbage import look_seldom
from dcos_tensorflow.process_end import end_process


def main(arguments: list[str]) -> int:
    """Run the cluster of a state dir."""
    if len(arguments) != 2 or arguments[0] != "serve":
        print("usage: python -m embedded_mesos serve STATE_DIR", file=sys.stderr)
        return 64
    look_seldom()
    from embedded_mesos.background_process import BackgroundProcessError
    from embedded_mesos.serving import serve

    try:
        serve(Path(arguments[1]))
    except (BackgroundProcessError, OSError) as error:
        print(f"the embedded cluster cannot start: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    end_process(main(sys.argv[1:]))
