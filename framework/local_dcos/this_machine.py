"""What an app cannot know of the machine that it runs on: variables over its own. Pure.

``local_dcos`` asks for every start of an app. A package names masters and ZooKeeper by DC/OS' own
host names, which lead nowhere here; its service listens on every address, which here would be
those of a laptop; its tasks run in images, where here they need a Python of this machine; and there
is nobody to log in to as a service account, and no secret store but a folder of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dcos_tensorflow.package.variables import variable_of
from local_dcos.app_definition import App

_PYTHON = variable_of(("service", "python"))
_VERSION = variable_of(("service", "tensorflow_version"))
_COMMAND = variable_of(("service", "job_cmd"))
_ACCOUNT = "DCOS_SERVICE_ACCOUNT_CREDENTIAL"
_ACCOUNT_SECRET = variable_of(("service", "service_account_secret"))


@dataclass(frozen=True)
class Keys:
    """What lets a service in, and others in to it."""

    #: Who it is for the master, and the file with its secret; None where the master asks nobody.
    principal: str
    credential: Path | None
    #: The file with the token of its own API.
    api_token: Path


def variables(
    app: App,
    master: str,
    folder: Path,
    pythons: Mapping[str, str],
    secrets: Path,
    *,
    own_python: str,
    keys: Keys,
) -> dict[str, str]:
    """Return the variables.

    ``folder`` is where the service may keep its state, ``secrets`` the folder with a file for each
    secret. ``pythons`` are by version of TensorFlow, that of "" for whoever names none;
    ``own_python`` is there in any case, for a command line, which may need no TensorFlow. ``keys``
    are handed over as files: environments are shown by Mesos and Marathon.
    """
    found = {
        "DCOS_TENSORFLOW_MASTER": master,
        "DCOS_TENSORFLOW_STATE": f"sqlite:///{folder / 'state.db'}",
        "DCOS_TENSORFLOW_HOME": str(folder),
        "DCOS_TENSORFLOW_API_HOST": "127.0.0.1",
        "DCOS_TENSORFLOW_SECRETS_DIR": str(secrets),
        # What is here Admin Router has no address that others have not.
        "DCOS_TENSORFLOW_API_FROM": "",
        "DCOS_TENSORFLOW_API_TOKEN_FILE": str(keys.api_token),
    }
    if keys.credential is not None:
        found["DCOS_TENSORFLOW_PRINCIPAL"] = keys.principal
        found["DCOS_TENSORFLOW_SECRET_FILE"] = str(keys.credential)
    if _ACCOUNT in app.secret_env:
        found |= {_ACCOUNT: "", _ACCOUNT_SECRET: ""}
    if app.env.get(_PYTHON) == "":
        # Without one the service would ask for an image, which the embedded cluster refuses.
        python = pythons.get(app.env.get(_VERSION, ""))
        if python is None and app.env.get(_COMMAND):
            python = own_python
        if python is not None:
            found[_PYTHON] = python
    return found
