"""The process behind ``local up --dcos``, and the facts of our package that a local DC/OS needs.

A package names masters and ZooKeeper by DC/OS' own host names, which lead nowhere here; its service
listens on every address, which here would be those of a laptop; its tasks run in images, where here
they need a Python of this machine; there is no log-in for service accounts, and no secret store but
a folder of files. So each start of an app gets variables over its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.mesos.calls import CallError
from dcos_tensorflow.mesos.credentials import Credentials
from dcos_tensorflow.mesos.hardened import HardenedSchedulerDriver
from dcos_tensorflow.package.variables import variable_of
from dcos_tensorflow.plugin.update_check import laid_over
from embedded_mesos import Credential
from local_dcos import App, Ask, Place, main

_PYTHON = variable_of(("service", "python"))
_VERSION = variable_of(("service", "tensorflow_version"))
_COMMAND = variable_of(("service", "job_cmd"))
_TEAMS = variable_of(("queue", "teams"))
_ACCOUNT = "DCOS_SERVICE_ACCOUNT_CREDENTIAL"
_ACCOUNT_SECRET = variable_of(("service", "service_account_secret"))


class DcosIntegration:
    """See ``local_dcos.Integration``."""

    call_error: type[Exception] = CallError

    def driver(
        self, scheduler: object, framework: dict[str, Any], master: str, credential: Credential
    ) -> HardenedSchedulerDriver:
        """Return a driver that survives what clusters do."""
        known = Credentials(credential.principal, credential.secret)
        return HardenedSchedulerDriver(scheduler, framework, master, authentication=known)

    def variables(self, app: App, place: Place) -> Mapping[str, str]:
        """Return what our scheduler reads of this machine.

        Secrets are handed over as files: environments are shown by Mesos and Marathon.
        """
        found = {
            "DCOS_TENSORFLOW_MASTER": place.master,
            "DCOS_TENSORFLOW_STATE": f"sqlite:///{place.folder / 'state.db'}",
            "DCOS_TENSORFLOW_HOME": str(place.folder),
            "DCOS_TENSORFLOW_API_HOST": "127.0.0.1",
            "DCOS_TENSORFLOW_SECRETS_DIR": str(place.secrets),
            # What is here Admin Router has no address that others have not.
            "DCOS_TENSORFLOW_API_FROM": "",
            "DCOS_TENSORFLOW_API_TOKEN_FILE": str(place.api_token),
        }
        if place.credential is not None:
            found["DCOS_TENSORFLOW_PRINCIPAL"] = place.principal
            found["DCOS_TENSORFLOW_SECRET_FILE"] = str(place.credential)
        if _ACCOUNT in app.secret_env:
            found |= {_ACCOUNT: "", _ACCOUNT_SECRET: ""}
        python = _python(app, place)
        return found if python is None else {**found, _PYTHON: python}

    def options_in_force(self, stored: dict[str, Any], ask: Ask) -> dict[str, Any]:
        """Return the stored options without those that the scheduler has refused."""
        answer = ask("/v1/configurations/target")
        try:
            target = json.loads(answer[1]) if answer is not None and answer[0] == 200 else {}
            return laid_over(stored, target["refused"]["in_force"])
        except (ValueError, KeyError, TypeError):
            # Another package's scheduler, or one whose options are all in force.
            return stored


def _python(app: App, place: Place) -> str | None:
    """Return the Python of this machine for an app that names none; None for no such app.

    Without one the service would ask for an image, which the embedded cluster refuses. A command
    line, or a queue, needs no TensorFlow, and runs with our own.
    """
    if app.env.get(_PYTHON) != "":
        return None
    found = place.pythons.get(app.env.get(_VERSION, ""))
    needs_none = app.env.get(_COMMAND) or app.env.get(_TEAMS)
    return sys.executable if found is None and needs_none else found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], DcosIntegration()))
