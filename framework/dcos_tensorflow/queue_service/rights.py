"""The rights of jobs' schedulers: the settings of each team, logins among them, and its token.

One file for each team reaches the tasks of its jobs' schedulers as a secret; the queue asks these
schedulers, and reads their stored state, with the same rights. A team with settings of its own
(``teams.T.settings``) has no login of the queue. Used by ``scheduler_tasks``, ``job_schedulers``
and the API. It opens nothing else on behalf of a team, and decides nothing about jobs.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.registry import write_private
from dcos_tensorflow.client.work_directory import WorkDirectory, make_folder
from dcos_tensorflow.deploy.scheduler_settings import state_of, without_password
from dcos_tensorflow.deploy.service_login import account_text
from dcos_tensorflow.deploy.settings import SETTINGS, Settings, collect
from dcos_tensorflow.queue_service.teams_file import Teams
from dcos_tensorflow.state.urls import SqliteUrl, parse_state_url

#: The file of a task that has none of a team: it can do nothing.
NO_RIGHTS = "scheduler.json"

#: What a job's scheduler is told by its task, or is the queue's own.
_OWN = frozenset(
    {
        *("options", "work_dir", "rerun", "exit_when_done", "wait_for_leadership", "standby"),
        *("api_host", "api_port", "advertise", "api_open", "api_from", "api_cert", "api_key"),
        *("api_token", "api_token_file", "api_read_token", "api_read_token_file"),
        *("api_dcos_keys", "api_dcos_operators", "api_dcos_readers"),
        # In the addresses, or in words, already.
        *("zookeeper_login_file", "secret_file", "service_account_file"),
        *("uninstall", "exit_when_uninstalled"),
    }
)
#: What a team's settings need not say: where the cluster is, and by what that is known.
_OF_CLUSTER = ("master", "state", "ca_file", "verify", "zookeeper_ca_file", "artifacts")


class Rights:
    """The rights of all teams of one queue. Thread-safe."""

    def __init__(
        self,
        folder: Path,
        token: str,
        settings: Settings,
        work: WorkDirectory,
        environ: Mapping[str, str],
        *,
        local: bool,
    ) -> None:
        """``folder`` is for the files, ``token`` what those of teams are made of.

        Raises UsageError where schedulers would not find the state store.
        """
        self.folder = folder
        self._token = token
        self._queues = settings
        self._environ = environ
        self._same: dict[str, Any] = {"local": True} if local else {}
        if _shares_this_machine(settings, work, local=local):
            self._same["work_dir"] = str(work.path)
        self._settings: dict[str, Settings] = {}
        make_folder(folder)
        write_private(folder / NO_RIGHTS, "{}")

    def are(self, teams: Teams) -> None:
        """Take the teams as they are now. Raises UsageError for settings of one that are wrong."""
        files = {team.name: teams.uses[team.name].settings for team in teams.teams}
        found = {name: self._of_team(file) for name, file in files.items()}
        told = {name: self._told(one, name, files[name]) for name, one in found.items()}
        for name, each in told.items():
            write_private(self.folder / self.file(name), json.dumps(each))
        # One that is not in the file any more may have jobs that run.
        self._settings = {**self._settings, **found}

    def file(self, team: str) -> str:
        """Return the name of the file with a team's rights."""
        return f"team-{quote(team, safe='')}.json"

    def token(self, team: str) -> str:
        """Return what the schedulers of a team's jobs say to the queue."""
        return api_token(self._token, f"team {team}")

    def api_token(self, team: str, job: str) -> str:
        """Return what the API of the scheduler of a team's job asks for."""
        return api_token(self.token(team), job)

    def are_said(self, token: str, teams: Iterable[str]) -> bool:
        """Say whether a token is that of the schedulers of one of these teams."""
        said = token.encode()
        return any(hmac.compare_digest(said, self.token(team).encode()) for team in teams)

    def settings(self, team: str) -> Settings:
        """Return the settings of the schedulers of a team's jobs."""
        return self._settings.get(team, self._queues)

    def _of_team(self, file: Path | None) -> Settings:
        """Return the settings that a file says, for the cluster of the queue. Raises UsageError."""
        if file is None:
            return self._queues
        given = {name: self._queues[name] for name in _OF_CLUSTER if self._queues.given(name)}
        for name in {"master", "state"} & given.keys():
            # The password stands before the place in it, paths of certificates behind.
            given[name] = without_password(given[name]).partition("?")[0]
        return collect(file, {}, {}, beneath=given)

    def _told(self, settings: Settings, team: str, file: Path | None) -> dict[str, Any]:
        """Return what the tasks of a team have, secrets and logins included. Raises UsageError."""
        names = [one.name for one in SETTINGS if one.name not in _OWN and settings.given(one.name)]
        found = {name: settings[name] for name in names}
        if settings.secret("secret"):
            found["secret"] = settings.secret("secret")
        # The queue's own account is in its environment, on DC/OS.
        account, _ = account_text(settings, self._environ if file is None else {})
        return {
            "token": self.token(team),
            "settings": {**found, **self._same},
            **({"account": account} if account else {}),
        }


def api_token(token: str, job: str) -> str:
    """Return what the API of a job's scheduler asks for; ``token`` is what its task has."""
    return hmac.new(token.encode(), job.encode(), hashlib.sha256).hexdigest()


def _shares_this_machine(settings: Settings, work: WorkDirectory, *, local: bool) -> bool:
    """Say whether schedulers find the queue's folders where they run. Raises UsageError."""
    if local:
        return True
    url = state_of(settings, work.service("any"))
    if isinstance(parse_state_url(url), SqliteUrl) and not settings["state"]:
        raise UsageError(
            "The schedulers of jobs run on the cluster's machines: name a state store in ZooKeeper"
            " with --state (sqlite:///FILE where all machines are this one)."
        )
    return isinstance(parse_state_url(url), SqliteUrl)
