"""The door of ``queue_replay``: ``python benchmarks/queue.py --traces DIR --json FILE``.

Python puts the folder of a script first on the path of imports, so a script of this name would hide
the standard library's ``queue`` from this benchmark and from each other one. Run, it takes the
folder to the end of the path; imported, it is the standard library's module.
"""

import sys
import sysconfig
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != here] + [str(here)]
    from queue_replay import main

    main()
else:
    found = PathFinder.find_spec(__name__, [sysconfig.get_path("stdlib")])
    assert found is not None
    assert found.loader is not None
    sys.modules[__name__] = module_from_spec(found)
    found.loader.exec_module(sys.modules[__name__])
