"""HDFS, Kerberos and Google Cloud Storage: the variables and files by which tasks reach them.

As the published package does it: environment, fetched files, secrets. Called by
``options.service``. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dcos_tensorflow.options.models import Options

from dcos_tensorflow.core.contract import (
    KERBEROS_KEYTAB_FILE,
    KERBEROS_KEYTAB_VARIABLE,
    KERBEROS_VARIABLE,
)
from dcos_tensorflow.core.spec.container_spec import TaskSecret
from dcos_tensorflow.core.spec.service_spec import Uri

#: Below the sandbox.
_GCS_KEY_FILE = ".secrets/gcs_key.json"
_HDFS_FILES = ("core-site.xml", "hdfs-site.xml")


def environment(options: Options) -> dict[str, str]:
    """Return the variables of every task."""
    env = {}
    service = options.service
    if _hdfs(options):
        env["HDFS_ENABLED"] = "true"
    if service.use_gcs_key_secret:
        env["USE_GCS_KEY"] = "true"
    kerberos = service.security.kerberos
    if kerberos.enabled:
        values = {
            "ENABLED": "true",
            "PRIMARY": kerberos.primary,
            "REALM": kerberos.realm,
            "KDC_HOSTNAME": kerberos.kdc.hostname,
            "KDC_PORT": str(kerberos.kdc.port),
            "KEYTAB_SECRET": kerberos.keytab_secret,
            "DEBUG": "true" if kerberos.debug else None,
        }
        env |= {KERBEROS_VARIABLE + name: value for name, value in values.items() if value}
    return env


def sandbox_environment(options: Options) -> dict[str, str]:
    """Return the variables that name files of the sandbox, as paths below it."""
    service = options.service
    found = {}
    if _hdfs(options):
        found["HADOOP_CONF_DIR"] = ""
    if service.use_gcs_key_secret:
        found["GOOGLE_APPLICATION_CREDENTIALS"] = _GCS_KEY_FILE
    if service.security.kerberos.enabled and service.security.kerberos.keytab_secret:
        found[KERBEROS_KEYTAB_VARIABLE] = KERBEROS_KEYTAB_FILE
    return found


def secrets(options: Options) -> tuple[TaskSecret, ...]:
    """Return the secrets that every task gets as files."""
    service = options.service
    found = []
    if service.use_gcs_key_secret:
        found.append(
            TaskSecret(service.gcs_key_secret, file=_GCS_KEY_FILE, option="service.gcs_key_secret")
        )
    kerberos = service.security.kerberos
    if kerberos.enabled and kerberos.keytab_secret:
        option = "service.security.kerberos.keytab_secret"
        found.append(TaskSecret(kerberos.keytab_secret, file=KERBEROS_KEYTAB_FILE, option=option))
    return tuple(found)


def uris(options: Options) -> list[Uri]:
    """Return the files that every task fetches."""
    config = _hdfs(options)
    return [Uri(f"{config}/{name}", extract=False) for name in _HDFS_FILES] if config else []


def _hdfs(options: Options) -> str:
    return options.service.hdfs.config_uri.strip().rstrip("/")
