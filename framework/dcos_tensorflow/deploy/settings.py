"""How a scheduler process is set up: by file, environment and flags, each stronger than the former.

Used by ``scheduler`` and, with flags alone, by ``run``; the flags of every command come from here,
so the web framework, TLS and the library of keys come with the checks that need them. Every value
knows where it came from, so that a wrong one is answered with the place where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click

from dcos_tensorflow.client.api_address import API_VARIABLE, IN_CLEAR_VARIABLE
from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.secret_file import secret_in
from dcos_tensorflow.client.work_directory import HOME_VARIABLE, expanded
from dcos_tensorflow.mesos.address import AddressError, parse_masters
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.errors import BadStateUrl
from dcos_tensorflow.state.urls import parse_state_url
from dcos_tensorflow.zookeeper_address import Tls, ZooKeeperAddressError, with_login, with_tls
from untrusted_input.json_text import read_json

PREFIX = "DCOS_TENSORFLOW_"
#: Variables with the prefix that are no setting of the scheduler.
OTHER_VARIABLES = frozenset({HOME_VARIABLE, API_VARIABLE, IN_CLEAR_VARIABLE})


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    if not value.isprintable():
        raise ValueError("must be one line of text")
    return value


def _number(kind: type[float], low: float, high: float, wanted: str) -> Callable[[Any], float]:
    """Return what reads a number from ``low`` to ``high``; ``wanted`` says what it must be."""

    def parse(value: Any) -> float:
        is_other = isinstance(value, bool) or (kind is int and isinstance(value, float))
        try:
            number = low - 1 if is_other else kind(value)
        except (TypeError, ValueError):
            number = low - 1
        if not low <= number <= high:
            raise ValueError(f"must be {wanted}")
        return number

    return parse


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if not isinstance(value, str) or value.strip().lower() not in known:
        raise ValueError("must be true or false")
    return known[value.strip().lower()]


def _is_on(value: Any) -> bool:
    try:
        return _switch(value)
    except ValueError:
        return False


def _file(value: Any) -> str:
    path = expanded(_text(value))
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return str(path.absolute())


def _folder(value: Any) -> str:
    path = expanded(_text(value))
    if not path.is_dir():
        raise ValueError(f"there is no folder {path}")
    return str(path.absolute())


def _path(value: Any) -> str:
    return str(expanded(_text(value)).absolute())


def _names(value: Any) -> str:
    names = [name.strip() for name in _text(value).split(",")]
    if not all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name in names):
        raise ValueError("must be names of variables with commas between")
    return ",".join(names)


def _users(value: Any) -> str:
    return ",".join(filter(None, (name.strip() for name in _text(value).split(","))))


def _folders(value: Any) -> str:
    return ",".join(_folder(one.strip()) for one in _text(value).split(",") if one.strip())


def _s3_places(value: Any) -> str:
    places = _users(value)
    known = ("s3://", "http://", "https://")
    if any(place != "*" and not place.startswith(known) for place in places.split(",") if place):
        raise ValueError("must be s3://bucket/prefix and https://host, with commas between, or *")
    return places


def _hosts(value: Any) -> str:
    hosts = _users(value)
    if not re.fullmatch(r"[A-Za-z0-9.:_,-]*", hosts):
        raise ValueError("must be names or addresses with commas between")
    return hosts


def _keys(value: Any) -> str:
    text = _text(value).strip()
    if text.startswith("https://"):
        return text
    if "://" in text:
        raise ValueError("must be an address that begins with https://, or a file")
    return _file(text)


def _masters(value: Any) -> str:
    try:
        parse_masters(_text(value))
    except AddressError as error:
        raise ValueError(str(error)) from error
    return str(value).strip()


def _state(value: Any) -> str:
    try:
        parse_state_url(_text(value))
    except BadStateUrl as error:
        raise ValueError(str(error)) from error
    return str(value)


def _delivery(value: Any) -> str:
    # The help of the commands that have this flag does not wait for what a scheduler needs.
    from dcos_tensorflow.scheduler.configuration import ArtifactDelivery

    try:
        return str(ArtifactDelivery(value))
    except ValueError:
        raise ValueError(f"must be one of {', '.join(ArtifactDelivery)}") from None


@dataclass(frozen=True)
class Setting:
    """One setting. ``secret`` values are never shown and have no flag."""

    name: str
    parse: Callable[[Any], Any]
    meaning: str
    default: Any = ""
    secret: bool = False

    @property
    def flag(self) -> str:
        """Return the flag's name."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Return the environment variable's name."""
        return PREFIX + self.name.upper()


_PORT = _number(int, 0, 65535, "a port from 0 to 65535; 0 takes a free one")
_SECONDS = _number(float, 1.0, 3600.0, "a number of seconds from 1 to 3600")

SETTINGS: tuple[Setting, ...] = (
    Setting("options", _path, "the options file, when no argument names it"),
    Setting(
        "published_defaults",
        _switch,
        "run 2 parameter servers and 3 workers if the options do not name these roles",
        False,
    ),
    Setting("work_dir", _path, "folder of this user's services"),
    Setting("local", _switch, "use the embedded cluster of 'local up'", False),
    Setting("master", _masters, "Mesos masters: host:port, a list of them, or zk://.../mesos"),
    Setting("state", _state, "state store: sqlite:///FILE or zk://HOST:PORT,..."),
    Setting(
        "zookeeper_login_file", _file, "file with user:password for ZooKeeper, master and state"
    ),
    Setting("zookeeper_ca_file", _file, "use TLS with ZooKeeper, and trust these certificates"),
    Setting("zookeeper_client_cert", _file, "client certificate for ZooKeeper"),
    Setting("zookeeper_client_key", _file, "key of that certificate"),
    Setting("principal", _text, "principal to register with; overrides service.service_account"),
    Setting("secret", _text, "the principal's secret", secret=True),
    Setting("secret_file", _file, "file with the principal's secret"),
    Setting("service_account_file", _file, "file with the service account for the login to DC/OS"),
    Setting("ca_file", _file, "certificates to trust for a master with TLS"),
    Setting("client_cert", _file, "client certificate for the master"),
    Setting("client_key", _file, "key of the certificate"),
    Setting("verify", _switch, "check the master's certificate", True),
    Setting("api_host", _text, "address that the HTTP API listens on", "127.0.0.1"),
    Setting("api_port", _PORT, "port that the HTTP API listens on", 0),
    Setting("api_token", _text, "token that the HTTP API requires", secret=True),
    Setting("api_token_file", _file, "file with the API's token"),
    Setting("api_read_token", _text, "token for reads only", secret=True),
    Setting("api_read_token_file", _file, "file with the token for reads only"),
    Setting("api_dcos_keys", _keys, "keys of the DC/OS to accept: https://... or a file"),
    Setting("api_dcos_operators", _users, "DC/OS users with operator rights, comma-separated"),
    Setting("api_dcos_readers", _users, "DC/OS users with read rights, comma-separated"),
    Setting(
        "api_from", _hosts, "names and addresses of a proxy that needs no token, like Admin Router"
    ),
    Setting("api_cert", _file, "certificate of the HTTP API, which then speaks TLS"),
    Setting("api_key", _file, "key of that certificate"),
    Setting("api_open", _switch, "serve the API without a token, also to the network", False),
    Setting("advertise", _text, "name or address under which agents reach the API"),
    Setting("artifacts", _delivery, "how tasks get the runner and the job: http or file"),
    Setting("artifacts_dir", _path, "folder of the files that tasks fetch"),
    Setting("secrets_dir", _folder, "folder in place of the secret store: a file for each path"),
    Setting(
        "task_secrets_dir",
        _folder,
        "folder of files that options may give to tasks as secrets (file:/path)",
    ),
    Setting(
        "task_secret_env",
        _names,
        "variables that options may give to tasks as secrets (env:NAME), comma-separated",
    ),
    Setting(
        "job_links_to",
        _folders,
        "folders outside the job's that links in it may lead to, comma-separated",
    ),
    Setting(
        "s3_places",
        _s3_places,
        "S3 for options: endpoints by URL; s3://bucket/prefix with the scheduler's own key",
    ),
    Setting(
        "machines_from",
        _users,
        "providers that options may buy from: ec2, endpoints, paths of programs, comma-separated",
    ),
    Setting(
        "mlflow_servers",
        _users,
        "tracking servers by URL that options may have told of runs, comma-separated",
    ),
    Setting(
        "wait_for_leadership", _switch, "wait while another scheduler serves the service", True
    ),
    Setting(
        "standby", _switch, "wait as a standby: serve the API and name the leader meanwhile", False
    ),
    Setting(
        "session_seconds",
        _SECONDS,
        "how long ZooKeeper keeps the leadership of a scheduler that it no longer hears",
        10.0,
    ),
    Setting("uninstall", _switch, "end the job and remove everything of the service", False),
    Setting("rerun", _switch, "start a new job when the last one is done", False),
    Setting("exit_when_done", _switch, "end when the job is done, and leave the cluster", False),
    Setting(
        "exit_when_uninstalled",
        _switch,
        "end when the service is uninstalled, and go on with an uninstall that has begun",
        False,
    ),
)

#: What an uninstall does without, whatever is wrong with it.
_NOT_OF_UNINSTALL = frozenset(
    {
        *("published_defaults", "artifacts", "secrets_dir", "task_secrets_dir", "task_secret_env"),
        *("job_links_to", "s3_places", "machines_from", "mlflow_servers"),
        *("wait_for_leadership", "standby"),
        *("session_seconds", "rerun"),
    }
)

#: How ZooKeeper is spoken to, for masters and state.
ZOOKEEPER_SETTINGS = (
    "zookeeper_login_file",
    "zookeeper_ca_file",
    "zookeeper_client_cert",
    "zookeeper_client_key",
)

#: Settings by which masters and a state store are spoken to, without a job.
CLUSTER_SETTINGS = (
    *("master", "local", "state", *ZOOKEEPER_SETTINGS, "principal", "secret_file"),
    *("ca_file", "client_cert", "client_key", "verify"),
)

#: Settings that ``run`` takes too; the rest are the daemon's.
RUN_SETTINGS = (
    *(
        "master",
        "state",
        *ZOOKEEPER_SETTINGS,
        "principal",
        "secret_file",
        "ca_file",
        "client_cert",
        "client_key",
    ),
    *("verify", "api_host", "api_port", "api_token_file", "advertise", "secrets_dir"),
    *("task_secrets_dir", "task_secret_env", "job_links_to", "s3_places", "machines_from"),
    *("mlflow_servers", "service_account_file", "published_defaults"),
)
_RUN_VARIABLES = frozenset(s.variable for s in SETTINGS if s.name in RUN_SETTINGS or s.secret)

#: Cosmos sets it, to any value, in the app of a service that is to be uninstalled (DC/OS SDK).
UNINSTALL_VARIABLE = "SDK_UNINSTALL"

#: Whatever stands before an @ may be a password.
_PASSWORD = re.compile(r"[^/@\s]*@")

_BY_NAME = {setting.name: setting for setting in SETTINGS}


F = TypeVar("F", bound=Callable[..., Any])


def setting_flags(names: Collection[str], shown: Collection[str] | None = None) -> Callable[[F], F]:
    """Return a decorator that adds the flags of these settings, those of secrets excepted.

    The help shows all of them, or those of ``shown``.
    """

    def decorate(function: F) -> F:
        for setting in reversed([s for s in SETTINGS if s.name in names and not s.secret]):
            meaning = f"{setting.meaning[:1].upper()}{setting.meaning[1:]}."
            flag: str = setting.flag
            metavar: str | None = setting.name.rpartition("_")[2].upper()
            if isinstance(setting.default, bool):
                flag, metavar = f"{flag}/--no-{flag.removeprefix('--')}", None
            add = click.option(
                flag,
                setting.name,
                default=None,
                metavar=metavar,
                help=meaning,
                hidden=shown is not None and setting.name not in shown,
            )
            function = add(function)
        return function

    return decorate


@dataclass(frozen=True)
class Settings:
    """Values by name, and where each that is no default came from."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def given(self, name: str) -> bool:
        """Say whether it was set."""
        return name in self.origins

    def origin(self, name: str) -> str:
        """Return where a value came from."""
        return self.origins.get(name, f"the default of {_BY_NAME[name].flag}")

    def with_default(self, name: str, value: Any) -> Settings:
        """Return the settings with another default for ``name``."""
        if self.given(name):
            return self
        return Settings({**self.values, name: value}, self.origins)

    def with_value(self, name: str, value: Any, origin: str) -> Settings:
        """Return the settings with ``name`` set, unless it was set already."""
        if self.given(name):
            return self
        return Settings({**self.values, name: value}, {**self.origins, name: origin})

    def without(self, *names: str) -> Settings:
        """Return the settings with the defaults of ``names``, as if they were never given."""
        return Settings(
            {**self.values, **{name: _BY_NAME[name].default for name in names}},
            {name: origin for name, origin in self.origins.items() if name not in names},
        )

    def secret(self, name: str) -> str:
        """Return a secret from its own setting or from its file. Raises UsageError."""
        if self.given(name) and self.given(f"{name}_file"):
            raise UsageError(
                f"{self.origin(name)} and {self.origin(f'{name}_file')} exclude each other."
            )
        if self.values[name]:
            return str(self.values[name])
        path = self.values[f"{name}_file"]
        return secret_in(path, self.origin(f"{name}_file")) if path else ""


def with_cosmos_wish(flags: Mapping[str, Any], environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the flags of ``scheduler`` with the uninstall that Cosmos may ask its app for."""
    if UNINSTALL_VARIABLE not in environ or flags.get("uninstall") is not None:
        return flags
    return {**flags, "uninstall": True}


def collect(
    file: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
    *,
    beneath: Mapping[str, Any] | None = None,
) -> Settings:
    """Return the settings. Raises UsageError naming every wrong value and where it stands.

    ``flags`` are those that were given; None stands for one that was not. ``beneath`` are weaker
    than all others, as another process has them.
    """
    given: dict[str, tuple[Any, str]] = {}
    problems = []
    for name, value, origin in (
        *((n, v, f"{n} of the queue") for n, v in (beneath or {}).items()),
        *_from_file(file),
        *_from_environment(environ),
        *((n, v, f"the flag {_BY_NAME[n].flag}") for n, v in flags.items() if v is not None),
    ):
        if name not in _BY_NAME:
            problems.append(_unknown(name, origin))
        else:
            given[name] = (value, origin)
    if _is_on(given.get("uninstall", (False, ""))[0]):
        # Whatever else is wrong: an uninstall ends.
        problems = []
        given = {name: one for name, one in given.items() if name not in _NOT_OF_UNINSTALL}
    values = {setting.name: setting.default for setting in SETTINGS}
    for name, (value, origin) in given.items():
        setting = _BY_NAME[name]
        try:
            values[name] = setting.parse(value)
        except ValueError as error:
            shown = "" if setting.secret else f" (given: {_PASSWORD.sub('***@', str(value))})"
            problems.append(f"{origin}: {error}{shown}")
    if problems:
        raise UsageError("\n".join(problems))
    settings = Settings(values, {name: origin for name, (_, origin) in given.items()})
    _check_together(settings)
    return _logged_in(settings)


def collect_for_run(
    environ: Mapping[str, str], flags: Mapping[str, Any], *, local: bool = False
) -> Settings:
    """Return the settings of a job that a person starts. Raises UsageError as ``collect`` does.

    ``local``: on the embedded cluster, whatever master the environment names.
    """
    known = {name: value for name, value in environ.items() if name in _RUN_VARIABLES}
    if local:
        known.pop(_BY_NAME["master"].variable, None)
    return collect(None, known, flags)


def zookeeper_flags(function: F) -> F:
    """Add the flags for how ZooKeeper is spoken to, to be handed to ``with_access``."""
    return setting_flags(ZOOKEEPER_SETTINGS)(function)


def with_access(url: str, environ: Mapping[str, str], flags: Mapping[str, Any]) -> str:
    """Return the URL of a state store with the login and TLS that flags or environment name.

    Raises UsageError.
    """
    wanted = {_BY_NAME[name].variable for name in ZOOKEEPER_SETTINGS}
    known = {name: value for name, value in environ.items() if name in wanted}
    return str(collect(None, known, {"state": url, **flags})["state"])


def _logged_in(settings: Settings) -> Settings:
    """Return the settings with ZooKeeper's login and TLS in the addresses there."""
    addresses = {name: settings[name] for name in ("master", "state")}
    if settings["zookeeper_ca_file"]:
        files = (settings[name] for name in ZOOKEEPER_SETTINGS[1:])
        tls = Tls(*files)
        addresses = {name: with_tls(url, tls) for name, url in addresses.items()}
    elif settings["zookeeper_client_cert"]:
        origin = settings.origin("zookeeper_client_cert")
        raise UsageError(f"{origin} needs {_BY_NAME['zookeeper_ca_file'].flag} too.")
    file = settings["zookeeper_login_file"]
    if file:
        origin = settings.origin("zookeeper_login_file")
        login = secret_in(file, origin)
        try:
            addresses = {name: with_login(url, login) for name, url in addresses.items()}
        except ZooKeeperAddressError as error:
            raise UsageError(f"{origin}: {error}: {file} must hold user:password.") from error
    return Settings({**settings.values, **addresses}, settings.origins)


def _from_file(file: Path | None) -> list[tuple[str, Any, str]]:
    if file is None:
        return []
    try:
        document = read_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"The file {file} of --config cannot be read: {error.strerror}."
        ) from error
    except ValueError as error:
        raise UsageError(f"The file {file} of --config is not JSON: {error}.") from error
    if not isinstance(document, dict):
        raise UsageError(f"The file {file} of --config must hold a JSON object.")
    return [(name, value, f"{name} in {file}") for name, value in document.items()]


def _from_environment(environ: Mapping[str, str]) -> list[tuple[str, Any, str]]:
    return [
        (name.removeprefix(PREFIX).lower(), value, f"the variable {name}")
        for name, value in environ.items()
        if name.startswith(PREFIX) and name not in OTHER_VARIABLES and value != ""
    ]


def _unknown(name: str, origin: str) -> str:
    near = get_close_matches(name, _BY_NAME, n=1)
    if near:
        setting = _BY_NAME[near[0]]
        meant = setting.variable if origin.startswith("the variable") else setting.name
        return f"{origin}: there is no such setting; did you mean {meant}?"
    return f"{origin}: there is no such setting; there are {', '.join(_BY_NAME)}"


def _check_together(settings: Settings) -> None:
    if settings["local"] and settings.given("master"):
        raise UsageError(
            f"{settings.origin('local')} and {settings.origin('master')} exclude each other."
        )
    if settings["standby"] and not settings["wait_for_leadership"]:
        raise UsageError(
            f"{settings.origin('standby')} and {settings.origin('wait_for_leadership')} exclude"
            " each other: a standby always waits."
        )
    for one, other in (
        ("client_cert", "client_key"),
        ("zookeeper_client_cert", "zookeeper_client_key"),
        ("api_cert", "api_key"),
    ):
        for given, missing in ((one, other), (other, one)):
            if settings[given] and not settings[missing]:
                raise UsageError(f"{settings.origin(given)} needs {_BY_NAME[missing].flag} too.")
    _check_api(settings)


def _check_api(settings: Settings) -> None:
    """Raise UsageError where it makes no sense, with the place where it stands."""
    _check_tokens(settings)
    if settings["api_dcos_keys"]:
        _check_keys(settings)
    if settings["api_cert"]:
        _check_certificate(settings)
    if settings.given("api_host"):
        _check_binding(settings)


def _check_tokens(settings: Settings) -> None:
    token, read_token = (settings.secret(name) for name in ("api_token", "api_read_token"))
    if token and token == read_token:
        raise UsageError("The operator's token of the API and the one that may only read are one.")
    users = settings["api_dcos_operators"] or settings["api_dcos_readers"]
    if bool(settings["api_dcos_keys"]) != bool(users):
        raise UsageError(
            "--api-dcos-keys names the keys of DC/OS, --api-dcos-operators and --api-dcos-readers"
            " its users with rights: give the keys together with at least one of the lists."
        )
    routers = settings["api_from"]
    if settings["api_open"] and not token and (read_token or users or routers):
        raise UsageError(
            f"{settings.origin('api_open')}: an open API requires no token, but tokens are given,"
            " or addresses that need none."
        )
    if users and routers:
        raise UsageError(
            f"{settings.origin('api_from')}: requests from there need no token, but --api-dcos-keys"
            " requires one: give one of them."
        )


def _check_keys(settings: Settings) -> None:
    from dcos_tensorflow.api.callers.dcos_tokens import KeysUnreadable, parse_keys

    place = settings["api_dcos_keys"]
    if place.startswith("https://"):
        return
    try:
        parse_keys(Path(place).read_bytes())
    except (OSError, KeysUnreadable) as error:
        raise UsageError(f"{settings.origin('api_dcos_keys')}: {place}: {error}.") from error


def _check_certificate(settings: Settings) -> None:
    from untrusted_input.server_tls import CertificateUnusable, ServerTls

    try:
        ServerTls(Path(settings["api_cert"]), Path(settings["api_key"]))
    except CertificateUnusable as error:
        raise UsageError(f"{settings.origin('api_cert')}: {error}.") from error


def _check_binding(settings: Settings) -> None:
    from dcos_tensorflow.api.callers.access import OpenBinding, check_binding

    try:
        guarded = bool(settings.secret("api_token") or settings["api_from"])
        check_binding(settings["api_host"], guarded, settings["api_open"])
    except OpenBinding as error:
        raise UsageError(f"{settings.origin('api_host')}: {error}.") from error
