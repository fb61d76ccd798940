"""The service account that a scheduler logs in to DC/OS with, from where it is handed over.

Used by ``scheduler`` and ``run``. On DC/OS the package's app has it in its environment, put there
out of the secret that ``service.service_account_secret`` names; the login itself is in
``mesos.service_account``. Nothing of it is ever shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.deploy.settings import Settings

if TYPE_CHECKING:
    from dcos_tensorflow.mesos.service_account import ServiceAccount
    from dcos_tensorflow.options import Options

#: What the DC/OS SDK's schedulers have it in: its JSON, or the path of a file with it.
CREDENTIAL_VARIABLE = "DCOS_SERVICE_ACCOUNT_CREDENTIAL"
#: Where DC/OS puts the certificates of its own authority, in every task's sandbox.
_CA_FILE = ".ssl/ca-bundle.crt"


def service_account(
    options: Options, settings: Settings, environ: Mapping[str, str], *, local: bool
) -> ServiceAccount | None:
    """Return whom to log in as; None where there is no login. Raises UsageError."""
    if local:
        return None
    text, origin = account_text(settings, environ)
    if text:
        return _parsed(text, origin)
    if not options.service.service_account_secret:
        return None
    raise UsageError(
        "service.service_account_secret: DC/OS hands its content to the scheduler in"
        f" {CREDENTIAL_VARIABLE}, which is not set; elsewhere name a file with it in"
        " --service-account-file."
    )


def account_text(settings: Settings, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the service account as it was handed over, and where; empty for none.

    Raises UsageError.
    """
    file, given = settings["service_account_file"], environ.get(CREDENTIAL_VARIABLE, "").strip()
    if file:
        return _read(Path(file), settings.origin("service_account_file")), file
    origin = f"the variable {CREDENTIAL_VARIABLE}"
    if not given or given.startswith("{"):
        return given, origin
    path = Path(unquote(urlsplit(given).path) if given.startswith("file:") else given)
    return _read(path, origin), origin


def with_clusters_authority(
    settings: Settings, account: ServiceAccount | None, environ: Mapping[str, str]
) -> Settings:
    """Return the settings with DC/OS' own certificates where TLS is spoken and none are named."""
    file = Path(environ.get("MESOS_SANDBOX") or ".") / _CA_FILE
    if account is None or not account.https or not file.is_file():
        return settings
    return settings.with_default("ca_file", str(file.absolute()))


def _read(path: Path, origin: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        # Not the path: it may be what should have stood in the file.
        raise UsageError(f"{origin}: names no file that can be read.") from None


def _parsed(text: str, origin: str) -> ServiceAccount:
    # On most clusters there is no login, and TLS comes with it.
    from dcos_tensorflow.mesos.service_account import ServiceAccountError, parse

    try:
        return parse(text)
    except ServiceAccountError as error:
        raise UsageError(f"{origin}: the service account {error}.") from None
