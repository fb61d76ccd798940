"""A job made of small files."""

import textwrap

import pytest

from dcos_tensorflow.task.python.contracts import find_contract
from dcos_tensorflow.task.spec import JobCode


@pytest.fixture
def found_in(tmp_path):
    """Return a function that writes a job's ``files`` and says how it is started."""

    def of(source="", files=None, **job):
        for name, text in {"job.py": source, **(files or {})}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(text, bytes):
                (tmp_path / name).write_bytes(text)
            else:
                (tmp_path / name).write_text(textwrap.dedent(text))
        return find_contract(JobCode(**{"name": "job", **job}), str(tmp_path))

    return of
