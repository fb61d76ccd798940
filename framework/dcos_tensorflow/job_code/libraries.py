"""Which modules can be imported without a word of other tasks: what is sure of code that has them.

Asked by ``facts`` for imports that are not the job's own. What is not listed may do anything.
"""

from __future__ import annotations

import os
import sys

#: Libraries that train, read or show by themselves and never look for other tasks. TensorFlow and
#: Keras do when their names for it are used, and those are read.
_PLAIN = frozenset(
    (
        *("tensorflow", "keras", "tf_keras", "tensorboard", "tensorflow_datasets", "tensorflow_io"),
        *("tensorflow_hub", "tensorflow_text", "tensorflow_probability", "tensorflow_addons"),
        *("absl", "numpy", "pandas", "scipy", "sklearn", "matplotlib", "seaborn", "PIL", "cv2"),
        *("skimage", "imageio", "h5py", "pyarrow", "joblib", "tqdm", "yaml", "requests", "rich"),
        *("typing_extensions", "six"),
        # What a task has of it is ``report`` (``task.python.reach``).
        "dcos_tensorflow",
    )
)
#: Modules of Python's own by which code can start programs, run what is not seen here, or learn
#: which machine or process it is.
_HIDING = frozenset(
    (
        *("asyncio", "ctypes", "http", "imp", "pkgutil", "platform", "pty", "runpy"),
        *("socket", "socketserver", "subprocess", "xmlrpc", "zipimport"),
    )
)


def is_plain(name: str) -> bool:
    """Say whether the top-level module ``name`` is known to do nothing of a cluster by itself."""
    return name in _PLAIN or (name not in _HIDING and _is_pythons(name))


def _is_pythons(name: str) -> bool:
    known = getattr(sys, "stdlib_module_names", None)
    if known is not None:
        return name in known
    # Before Python 3.10.
    folder = os.path.join(os.path.dirname(os.__file__), name)
    return (
        name in sys.builtin_module_names or os.path.isdir(folder) or os.path.exists(f"{folder}.py")
    )
