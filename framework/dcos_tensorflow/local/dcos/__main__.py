"""The process behind ``daemon``: ``python -m dcos_tensorflow.local.dcos FOLDER``."""

from __future__ import annotations

import sys

from dcos_tensorflow.local.dcos.daemon import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
