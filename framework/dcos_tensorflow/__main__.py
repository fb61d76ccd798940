"""The command ``dcos-tensorflow``, and ``python -m dcos_tensorflow``: the work before imports."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line and exit with its code."""
    # Who started us may have it ignored, and that stays.
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:
        # Ctrl-C ends what has done nothing yet without a word: Python's own would tell where.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dcos_tensorflow.cli import main as command_line

    if is_usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command_line.main()


if __name__ == "__main__":
    main()
