"""The process behind ``daemon``: ``python -m local_dcos FOLDER``."""

from __future__ import annotations

import sys

from local_dcos.daemon import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
