"""Kerberos for a task: its configuration, its keytab, and a ticket that is kept fresh.

Used by ``main``. The settings come as the SECURITY_KERBEROS_* variables of the published package.
Libraries that speak GSSAPI get a ticket by themselves from KRB5_CLIENT_KTNAME; Java, and so HDFS,
wants one that ``kinit`` brought. A missing ticket is noted in the log, and the job goes on: its
own error is clearer.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import shutil
import subprocess
import threading
from typing import Callable, Iterator, List, MutableMapping, Optional

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.secrets import secret_files

#: A ticket usually holds for ten hours, seldom for less than two.
RENEW_SECONDS = 3600.0
#: A KDC that does not answer must not hold up the job.
_KINIT_SECONDS = 30.0
#: What DC/OS puts before the name of a secret that is text and stands for something that is not.
_BASE64_MARK = "__dcos_base64__"
_CONFIGURATION = """\
[libdefaults]
default_realm = {realm}

[realms]
{realm} = {{
  kdc = {kdc}
}}
"""

Variables = MutableMapping[str, str]


@contextlib.contextmanager
def ready(variables: Variables, sandbox: str, log: Callable[[str], None]) -> Iterator[None]:
    """Let what starts with ``variables`` find Kerberos; nothing where it is not asked for."""
    if _setting(variables, "ENABLED") != "true":
        yield
        return
    done = threading.Event()
    if _is_traced(variables):
        _trace(variables)
    renewal: Optional[threading.Thread] = None
    try:
        _configure(variables, sandbox)
        command = _ticket_command(variables, sandbox)
        if command and _get_ticket(command, variables, log):
            renewal = threading.Thread(
                target=_renew, args=(command, variables, log, done), daemon=True
            )
            renewal.start()
    except (OSError, binascii.Error) as error:
        log(f"Kerberos is not set up: {error}")
    try:
        yield
    finally:
        done.set()
        if renewal is not None:
            renewal.join(_KINIT_SECONDS)


def _setting(variables: Variables, name: str) -> str:
    return variables.get(contract.KERBEROS_VARIABLE + name, "")


def _is_traced(variables: Variables) -> bool:
    return _setting(variables, "DEBUG") == "true"


def _trace(variables: Variables) -> None:
    """Let Kerberos' libraries say what they do in the task's own output: MIT's, and Java's."""
    variables.setdefault("KRB5_TRACE", "/dev/stderr")
    _add_java_option(variables, "-Dsun.security.krb5.debug=true")


def _add_java_option(variables: Variables, option: str) -> None:
    variables["HADOOP_OPTS"] = f"{variables.get('HADOOP_OPTS', '')} {option}".strip()


def _configure(variables: Variables, sandbox: str) -> None:
    """Write krb5.conf, unless there is one already."""
    realm, host = _setting(variables, "REALM"), _setting(variables, "KDC_HOSTNAME")
    if "KRB5_CONFIG" in variables or not realm or not host:
        return
    port = _setting(variables, "KDC_PORT")
    path = os.path.join(sandbox, "krb5.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_CONFIGURATION.format(realm=realm, kdc=f"{host}:{port}" if port else host))
    variables["KRB5_CONFIG"] = path
    # Java reads no such variable.
    _add_java_option(variables, f"-Djava.security.krb5.conf={path}")


def _ticket_command(variables: Variables, sandbox: str) -> List[str]:
    """Return the command that gets a ticket; empty without a keytab or a kinit."""
    keytab = variables.get(contract.KERBEROS_KEYTAB_VARIABLE, "")
    if not keytab:
        return []
    name = _setting(variables, "KEYTAB_SECRET").rpartition("/")[2]
    if name.startswith(_BASE64_MARK):
        with open(keytab, "rb") as file:
            content = base64.b64decode(file.read())
        keytab = secret_files.write(variables, sandbox, content)
        variables[contract.KERBEROS_KEYTAB_VARIABLE] = keytab
    cache = os.path.join(secret_files.directory(variables, sandbox), "krb5cc")
    variables.setdefault("KRB5CCNAME", f"FILE:{cache}")
    variables.setdefault("KRB5_CLIENT_KTNAME", keytab)
    program = shutil.which("kinit", path=variables.get("PATH"))
    if program is None:
        return []
    primary, realm = _setting(variables, "PRIMARY"), _setting(variables, "REALM")
    return [program, "-k", "-t", keytab, f"{primary}@{realm}" if realm else primary]


def _get_ticket(command: List[str], variables: Variables, log: Callable[[str], None]) -> bool:
    try:
        done = subprocess.run(
            command,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_KINIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log(f"there is no Kerberos ticket: {error}")
        return False
    said = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode != 0:
        log(f"there is no Kerberos ticket: kinit ended with {done.returncode}: {said}")
    elif _is_traced(variables):
        log(f"there is a Kerberos ticket; kinit said: {said}")
    return True


def _renew(
    command: List[str], variables: Variables, log: Callable[[str], None], done: threading.Event
) -> None:
    while not done.wait(RENEW_SECONDS):
        _get_ticket(command, variables, log)
