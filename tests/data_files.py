"""The files that tests read: the project's own in ``tests/data``, those of others beside it.

Universe's schemas, the published package and MNIST are not this project's to pass on. They lie in
``shared`` beside the checkout, or the tests that read them are skipped.
"""

from pathlib import Path

import pytest

_DATA = Path(__file__).with_name("data")
#: What jobs of end-to-end tests run.
PROGRAMS = Path(__file__).parent / "end_to_end" / "programs"
#: What a real Mesos said, a scenario a file; its README tells the form.
MESOS_RECORDINGS = _DATA / "mesos-recordings"
#: What the real ``dcos`` clients asked and printed, a command a file.
DCOS_CLI_RECORDINGS = _DATA / "dcos-cli-recordings"
#: The options of beta-tensorflow 0.2.0-1.5.0-beta: dotted name -> type, default and what else a
#: ``config.json`` says of one, but for its description.
PUBLISHED_OPTIONS = _DATA / "published-options.json"

#: What is not the project's own; no folder in a plain clone.
OTHERS = Path(__file__).resolve().parents[2] / "shared"


def of_others(path: str) -> Path:
    """Return a file or folder that is not the project's own; skip where it is missing."""
    found = OTHERS / path
    if not found.exists():
        pytest.skip(f"{path} is another project's, and not beside this checkout: {found}")
    return found
