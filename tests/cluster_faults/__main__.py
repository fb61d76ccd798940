"""The process behind ``background``: ``python -m cluster_faults serve STATE_DIR``."""

import sys
from pathlib import Path

from cluster_faults.background import ClusterWithDoor
from embedded_mesos.background_cluster import serve

if __name__ == "__main__":
    serve(Path(sys.argv[2]), ClusterWithDoor)
