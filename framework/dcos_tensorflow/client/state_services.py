"""The services of a state store: the phase of each, its leader, and the address of that.

The one place where a service is found by its state. Used by ``list --state`` and by the window of
a host of many (``window``). It reads the few values that tell so much, not whole states.
"""

from __future__ import annotations

from collections.abc import Sequence

from dcos_tensorflow.client.api_address import AddressUnusable, ApiAddress, told
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.wording import sentence
from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.model.gang import MAIN
from dcos_tensorflow.core.model.job import JobState
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.told_address import ToldAddress
from dcos_tensorflow.state.errors import BadStateUrl, StateError
from dcos_tensorflow.state.leadership import Holder
from dcos_tensorflow.state.services import StoredService, services_at


@dataclass(frozen=True)
class StateService:
    """A service as its state tells of it."""

    #: The name of its folder there: ``/`` in the service's name is ``__``.
    folder: str
    #: Who leads it; None where no scheduler serves it.
    leader: Holder | None
    #: Where that one is asked; None where none leads, or it is not known where.
    api: ApiAddress | None
    #: Why it is not known where a leader is asked; else empty.
    unknown: str
    #: Where its job stands; None where another release, or another program, has written that.
    job: JobState | None


def services_of(url: str, token: str = "", *, in_clear: bool = False) -> Sequence[StateService]:
    """Return the services of a state store, by name; their schedulers are asked with the token.

    ``in_clear`` allows the token to be sent without TLS to another machine. Raises CliError.
    """
    try:
        found = services_at(url, (paths.ADDRESS, paths.job(MAIN)))
    except BadStateUrl as error:
        raise UsageError(f"--state: {error}.") from error
    except StateError as error:
        raise CliError(f"The state store: {sentence(str(error))}", 8) from error
    return [_told(one, token, in_clear) for one in found]


def _told(stored: StoredService, token: str, in_clear: bool) -> StateService:
    api, unknown = None, ""
    if stored.leader is not None:
        address = ToldAddress.read(stored.values.get(paths.ADDRESS, b""))
        if address is None or address.leader != stored.leader:
            unknown = "its scheduler has told none: it is of an earlier release, or begins just now"
        else:
            try:
                is_here = stored.leader.is_here
                api = told(address.url, token, in_clear=in_clear, is_here=is_here)
            except AddressUnusable as error:
                unknown = str(error)
    return StateService(stored.folder, stored.leader, api, unknown, _job(stored))


def _job(stored: StoredService) -> JobState | None:
    try:
        return codec.decode(JobState, stored.values.get(paths.job(MAIN), b""))
    except codec.RecordError:
        return None
