"""Asking a running scheduler by its HTTP API.

A scheduler of this machine is found through the registration in the service's folder; one elsewhere
is named by its address. Used by the commands that ask or steer a service.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.api_address import ApiAddress, registered
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.registry import Registration
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

    from dcos_tensorflow.client.snapshot import Snapshot


_TIMEOUT_SECONDS = 5.0
#: The parts of what is downloaded, and how long one may be waited for.
_PART_BYTES = 256 * 1024
_PART_SECONDS = 60.0
_ELEMENT_NOT_FOUND = "Element not found"
#: A scheduler that loads its state, or a standby.
_NOT_NOW = 503


class SchedulerAway(CliError):
    """No scheduler answers for the service now; that may pass."""


class NoScheduler(SchedulerAway):
    """No process of this machine serves the service."""


@dataclass(frozen=True)
class SchedulerAnswer:
    """What a scheduler answered: the status, the text, and whose it is."""

    service: str
    status: int
    text: str

    @property
    def document(self) -> Any:
        """Return the body's JSON; None when it is none."""
        try:
            return read_json(self.text)
        except ValueError:
            return None

    @property
    def message(self) -> str:
        """Return what was said, without the full stop."""
        document = self.document
        told = document.get("message", self.text) if isinstance(document, dict) else self.text
        return str(told).strip().rstrip(".")

    @property
    def is_missing(self) -> bool:
        """Say whether there is no such thing, in the SDK's words."""
        return self.text.strip() == _ELEMENT_NOT_FOUND

    def found(self, what: str) -> Any:
        """Return the body of a success. Raises CliError when there is no ``what``."""
        if self.is_missing:
            raise CliError(f"There is no {what}.")
        return self.expected()

    def expected(self) -> Any:
        """Return the body of a success. Raises CliError with what was answered otherwise.

        That is SchedulerAway while the scheduler has no state to tell of.
        """
        if self.status >= 300:
            kind = SchedulerAway if self.status == _NOT_NOW else CliError
            raise kind(f"{_scheduler_of(self.service)} answered {self.status}: {self.message}.")
        if not self.text:
            return None
        try:
            return read_json(self.text)
        except ValueError as error:
            whom = f" for {self.service}" if self.service else ""
            raise CliError(
                f"The server that answers{whom} is no scheduler of dcos-tensorflow: its answer is"
                f" no JSON ({self.text[:60]!r})."
            ) from error


class SchedulerClient:
    """The API of one scheduler. ``registration`` is that of one of this machine.

    ``service`` is empty while it is not known whose API an address is.
    """

    def __init__(
        self, service: str, api: ApiAddress, registration: Registration | None = None
    ) -> None:
        self.service = service
        self.api = api
        self.registration = registration

    def get(self, path: str) -> Any:
        """Return the JSON at ``path``. Raises SchedulerAway, or CliError with what was answered."""
        return self.ask("GET", path).expected()

    def snapshot(self) -> Snapshot:
        """Return where the job stands. Raises SchedulerAway."""
        from dcos_tensorflow.client.snapshot import Snapshot

        return Snapshot(self.get("/v1/job"), self.get("/v1/why"))

    def stop(self, why: str) -> None:
        """Ask for the job's end."""
        self.ask("POST", "/v1/job/stop", json.dumps({"why": why})).expected()

    def ask(
        self, method: str, path: str, body: str | None = None, seconds: float = _TIMEOUT_SECONDS
    ) -> SchedulerAnswer:
        """Return whatever is answered. Raises SchedulerAway without an answer.

        Raises CliError for what is no answer of a scheduler: a redirect, a wrong certificate, a
        token that is missing or wrong.
        """
        with self._asking(method, path, body, seconds) as answer:
            text = answer.read().decode("utf-8", "replace")
        self._check(answer.status, answer.getheader("Location", ""))
        return SchedulerAnswer(self.service, answer.status, text)

    def download(self, path: str, body: str, file: IO[bytes], what: str) -> None:
        """Post a body, and write the bytes that it is answered with. ``what`` it is asked of.

        Raises SchedulerAway and CliError, also for an answer that was cut.
        """
        refused = None
        with self._asking("POST", path, body, _PART_SECONDS) as answer:
            if answer.status == 200:
                while part := answer.read(_PART_BYTES):
                    file.write(part)
            else:
                refused = answer.read().decode("utf-8", "replace")
        self._check(answer.status, answer.getheader("Location", ""))
        if refused is not None:
            SchedulerAnswer(self.service, answer.status, refused).found(what)

    @contextmanager
    def _asking(
        self, method: str, path: str, body: str | None, seconds: float
    ) -> Iterator[HTTPResponse]:
        """Hand over the answer to be read. Raises as ``ask`` does, also for what is read of it."""
        # It brings TLS along, and the help of the commands that ask does not wait for that.
        import http.client
        import ssl

        headers = {"Accept": "application/json"}
        if self.api.token:
            headers["Authorization"] = f"Bearer {self.api.token}"
        connection = None
        try:
            connection = connection_to(self.api, seconds)
            connection.request(method, self.api.prefix + path, body, headers)
            yield connection.getresponse()
        except ssl.SSLCertVerificationError as error:
            raise CliError(
                f"The certificate of {self.api.url} is not trusted: {error.verify_message}. Name"
                " the file of the authority that signed it in SSL_CERT_FILE."
            ) from error
        except (OSError, http.client.HTTPException) as error:
            told = f"{_scheduler_of(self.service)} does not answer at {self.api.url}: {error}."
            # Of a process of this machine that no longer listens the number is left.
            gone = self.registration is not None and isinstance(error, ConnectionRefusedError)
            raise (NoScheduler if gone else SchedulerAway)(told) from error
        finally:
            if connection is not None:
                connection.close()

    def _check(self, status: int, location: str) -> None:
        """Raise CliError for what only a person can mend."""
        if 300 <= status < 400:
            raise CliError(
                f"{self.api.url} sends to another address ({location or 'it does not say which'}),"
                " which nothing was sent to: name the right one with --api."
            )
        if status == 401:
            what = "refuses this token" if self.api.token else "asks for its token"
            raise CliError(
                f"{_scheduler_of(self.service)} at {self.api.url} {what}: name the file that"
                " holds it with --api and --api-token-file."
            )


def _scheduler_of(service: str) -> str:
    return f"The scheduler of {service}" if service else "The scheduler"


def connection_to(api: ApiAddress, seconds: float) -> HTTPConnection:
    """Return a connection to a scheduler, with TLS where it speaks that; it is not opened yet."""
    import http.client

    if not api.tls:
        return http.client.HTTPConnection(api.host, api.port, timeout=seconds)
    import ssl

    context = ssl.create_default_context()
    if api.certificate:
        # The file that it serves with says whose it is; it is for other names than loopback's.
        context = ssl.create_default_context(cafile=api.certificate)
        context.check_hostname = False
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    return http.client.HTTPSConnection(api.host, api.port, timeout=seconds, context=context)


def connect(directory: ServiceDirectory, service: str) -> SchedulerClient:
    """Return a client of the service's scheduler on this machine. Raises NoScheduler."""
    found = registry.read(directory)
    if found is None or not found.process_lives():
        raise NoScheduler(f"No scheduler of {service} runs on this machine.")
    return client_of(found)


def client_of(registration: Registration) -> SchedulerClient:
    """Return a client of a scheduler that was registered."""
    address = registered(registration.api, registration.token, registration.certificate)
    return SchedulerClient(registration.service, address, registration)
