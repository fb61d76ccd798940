"""From settings to a scheduler: its configuration, its state store, the access to its API.

Used by ``run`` and ``scheduler`` before there is a scheduler.
"""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.deploy.settings import Settings
from dcos_tensorflow.mesos.address import parse_masters
from dcos_tensorflow.scheduler.configuration import ArtifactDelivery, DcosUsers, SchedulerConfig
from dcos_tensorflow.scheduler.gate import Allowed
from dcos_tensorflow.zookeeper_address import ZooKeeperAddress, ensemble_of


def scheduler_config(
    settings: Settings, directory: ServiceDirectory, *, local: bool, folder: Path | None = None
) -> SchedulerConfig:
    """Return the configuration of a scheduler whose settings are complete.

    ``folder`` is where the options lie that it is started with.

    Without a state store the state lies in the service's folder, or beside the masters when those
    are elected in ZooKeeper.
    """
    return SchedulerConfig(
        master=settings["master"],
        state=state_of(settings, directory),
        artifacts_dir=Path(settings["artifacts_dir"] or directory.artifacts),
        principal=settings["principal"],
        secret=settings.secret("secret"),
        ca_file=settings["ca_file"],
        client_cert=settings["client_cert"],
        client_key=settings["client_key"],
        verify=settings["verify"],
        api_host=settings["api_host"],
        api_port=settings["api_port"],
        api_token=settings.secret("api_token"),
        api_read_token=settings.secret("api_read_token"),
        api_dcos=_dcos_users(settings),
        api_from=tuple(filter(None, settings["api_from"].split(","))),
        api_cert=settings["api_cert"],
        api_key=settings["api_key"],
        advertise=settings["advertise"],
        artifacts=settings["artifacts"]
        or (ArtifactDelivery.FILE if local else ArtifactDelivery.HTTP),
        leadership_timeout_seconds=None if settings["wait_for_leadership"] else 0.0,
        standby=settings["standby"],
        session_seconds=settings["session_seconds"],
        secrets_dir=Path(settings["secrets_dir"]) if settings["secrets_dir"] else None,
        secret_store=not local,
        allowed=Allowed(
            _listed(settings["task_secret_env"]),
            Path(settings["task_secrets_dir"]) if settings["task_secrets_dir"] else None,
            _listed(settings["s3_places"]),
            _listed(settings["machines_from"]),
            _listed(settings["mlflow_servers"]),
            folder,
            links=links_of(settings),
            lists=directory.inputs,
            # On the embedded cluster tasks are processes of this user.
            everything=local,
        ),
        fresh=settings["rerun"],
        uninstall=settings["uninstall"],
        finish_uninstall=settings["exit_when_uninstalled"],
        output_dir=str(directory.output) if local else "",
        first_run=directory.next_run() if local else 1,
    )


def links_of(settings: Settings) -> tuple[Path, ...]:
    """Return the folders that links in the job's folder may lead to."""
    return tuple(map(Path, sorted(_listed(settings["job_links_to"]))))


def _dcos_users(settings: Settings) -> DcosUsers | None:
    if not settings["api_dcos_keys"]:
        return None
    operators, readers = (_listed(settings[f"api_dcos_{who}"]) for who in ("operators", "readers"))
    return DcosUsers(settings["api_dcos_keys"], operators, readers)


def _listed(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.split(",")))


def state_of(settings: Settings, directory: ServiceDirectory) -> str:
    """Return the URL of the state store that the settings mean."""
    if settings["state"]:
        return str(settings["state"])
    master = settings["master"].strip()
    if master and isinstance(parse_masters(master), ZooKeeperAddress):
        return ensemble_of(master)
    return directory.state_url


def with_guarded_api(settings: Settings, *, local: bool) -> Settings:
    """Return the settings with an API that asks for a token, and that agents elsewhere reach.

    Without a token anybody on this machine could give the job other code to run. A token that is
    made here lies in the registration, which is this user's alone. The API's address, ``api_open``
    and ``api_from`` are the operator's choice.
    """
    elsewhere = not local and settings["artifacts"] != ArtifactDelivery.FILE
    if elsewhere and not settings.given("api_host"):
        address = reachable_address(settings["master"])
        settings = settings.with_value("api_host", address, "this machine's address")
    if settings.secret("api_token") or settings["api_open"] or settings["api_from"]:
        return settings
    return settings.with_value("api_token", secrets.token_urlsafe(24), "a token of this process")


def reachable_address(master: str) -> str:
    """Return this machine's address as the masters see it. Raises CliError."""
    where = parse_masters(master)
    if isinstance(where, ZooKeeperAddress):
        host, port = where.hosts[0]
    else:
        host, port = where[0].host, where[0].port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_DGRAM
        )[0]
        # Connecting a datagram socket sends nothing; the kernel only chooses the way.
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise CliError(
            f"There is no way to {host} ({error.strerror or error}); see --master, or name this"
            " machine's address with --api-host."
        ) from error


def without_password(url: str) -> str:
    """Return a URL as it may be written down: what stands before an @ is left out."""
    scheme, separator, rest = url.partition("://")
    place = (separator and rest) or url
    return f"{scheme}{separator}{place.rpartition('@')[2]}" if separator else place
