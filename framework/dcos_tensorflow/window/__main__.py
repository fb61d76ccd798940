"""The window's process; ``dcos-tensorflow open`` starts it."""

import sys
from pathlib import Path

from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.window.process import serve

serve(WorkDirectory(Path(sys.argv[1])))
