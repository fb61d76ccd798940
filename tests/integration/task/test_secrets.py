"""Secrets as files and Kerberos, in a real task."""

import base64
import json
import os
import signal
import stat
from pathlib import Path

import pytest

from runner_process import Starter, Task
from waiting import eventually

SECRET = "only-for-the-task"
SHOW = (
    "import os\n"
    "print(open('conf/key').read(), oct(os.stat('conf/key').st_mode & 0o777), flush=True)\n"
)
WAIT = "import time\nwhile True: time.sleep(60)\n"
#: Stands for MIT's kinit: says how it was called, and that there is a ticket now.
KINIT = '#!/bin/sh\necho "$@" >> "$MESOS_SANDBOX/kinit-calls"\n: > "${KRB5CCNAME#FILE:}"\n'
KERBEROS = {
    "SECURITY_KERBEROS_ENABLED": "true",
    "SECURITY_KERBEROS_PRIMARY": "tensorflow",
    "SECURITY_KERBEROS_REALM": "LOCAL",
    "SECURITY_KERBEROS_KDC_HOSTNAME": "kdc.local",
    "SECURITY_KERBEROS_KDC_PORT": "2500",
}


def secrets(text: str = SECRET, path: str = "conf/key") -> dict[str, str]:
    files = {path: base64.b64encode(text.encode()).decode()}
    return {"TASK_RUNNER_SECRET_FILES": json.dumps(files)}


def place(task: Task) -> Path:
    """Return the folder in which the secret really lies."""
    link = task.sandbox / "conf" / "key"
    eventually(link.is_symlink, what="the link")
    return Path(os.readlink(link)).parent


def in_sandbox(task: Task) -> bytes:
    return b"".join(p.read_bytes() for p in task.sandbox.rglob("*") if p.is_file())


def test_a_job_reads_a_secret_file_that_only_its_user_may_read(start: Starter) -> None:
    task = start(SHOW, variables=secrets())
    assert task.wait() == 0
    assert task.text() == f"{SECRET} 0o600\n"


def test_no_other_user_may_look_into_its_folder(start: Starter) -> None:
    task = start(WAIT, variables=secrets())
    folder = place(task)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert task.sandbox not in folder.parents


def test_the_files_are_gone_with_the_task(start: Starter) -> None:
    task = start("pass", variables=secrets())
    task.wait()
    assert not place(task).exists()


def test_the_files_are_gone_when_the_runner_was_killed(start: Starter) -> None:
    task = start("print('ready', flush=True)\n" + WAIT, variables=secrets())
    task.wait_for_text("ready")
    folder = place(task)
    task.process.send_signal(signal.SIGKILL)
    eventually(lambda: not folder.exists(), what="the end of the secrets")


def test_the_job_does_not_find_them_in_its_environment(start: Starter) -> None:
    show = "import os\nprint('SECRET_FILES' in ''.join(os.environ), flush=True)\n"
    task = start(show, variables=secrets())
    task.wait()
    assert task.text() == "False\n"


def test_nothing_of_a_secret_stays_in_the_sandbox(start: Starter) -> None:
    task = start("pass", variables=secrets())
    task.wait()
    found = in_sandbox(task)
    assert SECRET.encode() not in found
    assert base64.b64encode(SECRET.encode()) not in found


def test_secrets_that_cannot_be_written_end_the_task_before_it_starts(start: Starter) -> None:
    task = start("print('ran')", variables=secrets(), files={"conf": "a file"})
    assert task.wait() == 71
    assert "the task's secrets cannot be written" in task.text("stderr")
    assert task.text() == ""


@pytest.fixture
def kinit(tmp_path: Path) -> dict[str, str]:
    """Put a kinit on the PATH; return the variables of a task that finds it."""
    program = tmp_path / "bin" / "kinit"
    program.parent.mkdir()
    program.write_text(KINIT)
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", **KERBEROS}


def test_kerberos_is_configured_from_the_published_variables(start: Starter) -> None:
    task = start("import os\nprint(open(os.environ['KRB5_CONFIG']).read())", variables=KERBEROS)
    task.wait()
    assert "default_realm = LOCAL" in task.text()
    assert "kdc = kdc.local:2500" in task.text()


def test_the_job_starts_with_a_ticket(start: Starter, kinit: dict[str, str]) -> None:
    show = "import os\nprint(os.path.exists(os.environ['KRB5CCNAME'][len('FILE:'):]))\n"
    given = {"SECURITY_KERBEROS_KEYTAB": "conf/key", **kinit, **secrets()}
    task = start(show, variables=given)
    task.wait()
    assert task.text() == "True\n"
    assert task.text("kinit-calls") == "-k -t conf/key tensorflow@LOCAL\n"


def test_a_keytab_that_is_a_secret_of_text_is_decoded(
    start: Starter, kinit: dict[str, str]
) -> None:
    show = "import os\nprint(open(os.environ['KRB5_CLIENT_KTNAME'], 'rb').read())\n"
    given = {
        "SECURITY_KERBEROS_KEYTAB": "conf/key",
        "SECURITY_KERBEROS_KEYTAB_SECRET": "team/__dcos_base64__keytab",
        **kinit,
        **secrets(base64.b64encode(b"\x05\x02").decode()),
    }
    task = start(show, variables=given)
    task.wait()
    assert task.text() == "b'\\x05\\x02'\n"


def test_kerberos_says_what_it_does_where_debug_asks_for_it(start: Starter) -> None:
    show = "import os\nprint(os.environ['KRB5_TRACE'], os.environ['HADOOP_OPTS'])\n"
    task = start(show, variables={"SECURITY_KERBEROS_DEBUG": "true", **KERBEROS})
    task.wait()
    assert task.text().startswith("/dev/stderr -Dsun.security.krb5.debug=true ")


def test_what_kinit_says_is_told_where_debug_asks_for_it(
    start: Starter, kinit: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "bin" / "kinit").write_text('#!/bin/sh\necho asking >> "$KRB5_TRACE"\n')
    debug = {"SECURITY_KERBEROS_DEBUG": "true", "SECURITY_KERBEROS_KEYTAB": "conf/key"}
    task = start("pass", variables={**debug, **kinit, **secrets()})
    task.wait()
    assert "kinit said: asking" in task.text("stderr")


def test_a_ticket_that_is_refused_is_told_and_the_job_goes_on(
    start: Starter, kinit: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "bin" / "kinit").write_text("#!/bin/sh\necho no such client\nexit 1\n")
    given = {"SECURITY_KERBEROS_KEYTAB": "conf/key", **kinit, **secrets()}
    task = start("print('ran')", variables=given)
    assert task.wait() == 0
    assert "there is no Kerberos ticket: kinit ended with 1: no such client" in task.text("stderr")
