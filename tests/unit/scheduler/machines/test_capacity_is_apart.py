"""Who buys no machines imports nothing of what buys them."""

import subprocess
import sys

_PROGRAM = """
import sys
import dcos_tensorflow.scheduler.scheduler, dcos_tensorflow.api.app
print([name for name in sys.modules if name.startswith(
    ("dcos_tensorflow.capacity", "dcos_tensorflow.scheduler.machines.buying", "boto3"))])
"""


def test_without_the_section_nothing_of_it_is_imported() -> None:
    found = subprocess.run(
        [sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == "[]"
