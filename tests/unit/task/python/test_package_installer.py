"""What the failure of an installer means, by what it has printed."""

import pytest

from dcos_tensorflow.task.python.package_installer import failure, masked

OFFLINE = """\
WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by \
'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to \
establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/pandas/
ERROR: Could not find a version that satisfies the requirement pandas (from versions: none)
ERROR: No matching distribution found for pandas"""
NO_VERSION = """\
ERROR: Could not find a version that satisfies the requirement pandas==99 (from versions: 2.0)
ERROR: No matching distribution found for pandas==99"""
CONFLICT = """\
ERROR: Cannot install numpy==2.0 and tensorflow==2.15.1 because these package versions have \
conflicting dependencies.

The conflict is caused by:
    The user requested numpy==2.0
    tensorflow 2.15.1 depends on numpy<2.0.0 and >=1.23.5

To fix this you could try to:
1. loosen the range of package versions you've specified
ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/"""
OF_UV = """\
  \u00d7 No solution found when resolving dependencies:
  \u2570\u2500\u25b6 Because only pandas<=2.3 is available and you require pandas==99,
      we can conclude that your requirements are unsatisfiable."""
OF_UV_OFFLINE = """\
error: Failed to fetch: `https://index.example/simple/pandas/`
  Caused by: error sending request for url (https://index.example/simple/pandas/)
  Caused by: client error (Connect)
  Caused by: dns error: failed to lookup address information"""
RATE_LIMITED = "ERROR: 429 Client Error: Too Many Requests for url: https://index.example/pandas/"
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("text", "retryable", "words"),
    [
        (OFFLINE, True, "the package index does not answer"),
        (OF_UV_OFFLINE, True, "the package index does not answer: Failed to fetch"),
        (RATE_LIMITED, True, "the package index does not answer: 429 Client Error"),
        (FULL, True, "there is no space left for it"),
        (NO_VERSION, False, "cannot be installed: No matching distribution found for pandas==99"),
        (CONFLICT, False, "The user requested numpy==2.0, tensorflow 2.15.1 depends on numpy<2.0"),
        (OF_UV, False, "No solution found when resolving dependencies: Because only pandas<=2.3"),
        ("Killed", False, "cannot be installed: Killed"),
        ("", False, "the installer says nothing"),
    ],
)
def test_a_failure_is_one_sentence_that_says_whether_another_try_helps(text, retryable, words):
    found = failure("service.requirements", text.splitlines())
    assert found.retryable is retryable
    assert words in str(found)
    assert "\n" not in str(found)
    assert found.lines == tuple(text.splitlines())
    assert found.hint


def test_a_conflict_names_the_option_that_chooses_tensorflow():
    assert "service.tensorflow_version" in failure("x", CONFLICT.splitlines()).hint


@pytest.mark.parametrize(
    "line", ["Looking in indexes: https://me:s3cret@index.example/simple", "at http://s3cret@host/"]
)
def test_a_password_in_a_url_is_masked(line):
    assert "s3cret" not in masked(line)
    assert "(hidden)@" in masked(line)
