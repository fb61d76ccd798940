"""Importing pymesos leaves signals and logging alone, in any thread."""

import subprocess
import sys

import pytest

PLAIN = "import pymesos"
OURS = "import dcos_tensorflow.mesos.hardened"
#: A shell starts what runs in the background with SIGINT ignored, and that is inherited.
USUAL = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
REPORT = """
import logging, signal
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler,
      logging.getLogger("pymesos").handlers == [],
      logging.getLogger("pymesos").level)
"""
THREADED = """
import threading
def run():
    {}
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def run(*parts):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join((USUAL, *parts))],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    "how",
    [OURS, THREADED.format(OURS), f"{PLAIN}\n{OURS}"],
    ids=["main thread", "another thread", "after a plain import"],
)
def test_ours_leaves_the_process_as_it_was(how):
    assert run(how, REPORT) == "True True 0"
