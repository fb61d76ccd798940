"""A spot machine's notice of its own end, from EC2's instance metadata service.

``runner`` starts a watch where its spec says that the machine is a spot one, and nowhere else. Two
things are told there: that the machine is taken back, two minutes before (interruption), and that
it may be soon (rebalance). Nothing here does anything about it.

Sources: EC2 User Guide, "Spot Instance interruption notices", "EC2 instance rebalance
recommendations" (both: look every five seconds), "Use IMDSv2".
"""

from __future__ import annotations

import calendar
import http.client
import json
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, Mapping, Optional

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass

#: Where the service is; the variable is that of AWS' own libraries.
ENDPOINT_VARIABLE = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
ENDPOINT = "http://169.254.169.254"
LOOK_SECONDS = 5.0
#: A machine that has not answered so often from the beginning has no such service.
_TRIES = 12
_ANSWER_SECONDS = 2.0
#: No answer of interest is longer.
_MOST_BYTES = 4096
#: A token is asked for anew before it ends; seconds.
_TOKEN_SECONDS = 21_600
_TOKEN_PATH = "/latest/api/token"
_INTERRUPTION_PATH = "/latest/meta-data/spot/instance-action"
_REBALANCE_PATH = "/latest/meta-data/events/recommendations/rebalance"


@dataclass(frozen=True)
class Notice:
    """What was said. ``at`` is when the machine goes, or when it was said that it may; unix."""

    kind: str
    at: float

    def as_json(self) -> Dict[str, Any]:
        """Return it as the status has it."""
        return {"kind": self.kind, "at": self.at}


class NoticeWatch:
    """Looks every few seconds, in a thread, until the machine is known to go.

    ``notice`` is the newest; ``tell`` is called from the thread when it has changed, and ``log``
    with what is worth a line.
    """

    def __init__(
        self,
        variables: Mapping[str, str],
        tell: Callable[[], object],
        log: Callable[[str], object],
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self.notice: Optional[Notice] = None
        self._service = MetadataService(variables.get(ENDPOINT_VARIABLE) or ENDPOINT)
        self._tell = tell
        self._log = log
        self._look_seconds = look_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="notices", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more. What is under way may take seconds to end; no thread waits for it."""
        self._stopping.set()

    def _watch(self) -> None:
        answered, failures = False, 0
        while not self._stopping.is_set():
            try:
                found = read_notice(self._service)
                answered = True
                self._take(found)
            except (OSError, http.client.HTTPException, ValueError) as error:
                failures += 1
                if not answered and failures == _TRIES:
                    where = f"{self._service.endpoint}: {error}"
                    self._log(f"no notice of this spot machine can be read at {where}")
                    return
            if self.notice is not None and self.notice.kind == contract.NOTICE_INTERRUPTION:
                return
            self._stopping.wait(self._look_seconds)

    def _take(self, found: Optional[Notice]) -> None:
        if found is None or found == self.notice:
            return
        self.notice = found
        if found.kind == contract.NOTICE_INTERRUPTION:
            self._log(f"this machine is taken back in {max(0.0, found.at - time.time()):.0f} s")
        else:
            self._log("this machine is more likely than others to be taken back")
        self._tell()


class MetadataService:
    """EC2's service at ``endpoint``, by tokens (IMDSv2)."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        parsed = urllib.parse.urlsplit(endpoint)
        self._host, self._port = parsed.hostname or "", parsed.port or 80
        self._token = ""
        self._token_until = 0.0

    def get(self, path: str) -> Optional[str]:
        """Return what is there; None for nothing. Raises OSError, HTTPException or ValueError."""
        if time.monotonic() >= self._token_until:
            headers = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SECONDS)}
            status, self._token = self._ask("PUT", _TOKEN_PATH, headers)
            if status != 200:
                raise ValueError(f"no token: status {status}")
            self._token_until = time.monotonic() + _TOKEN_SECONDS / 2
        status, text = self._ask("GET", path, {"X-aws-ec2-metadata-token": self._token})
        if status == 401:
            self._token_until = 0.0
        if status not in (200, 404):
            raise ValueError(f"status {status}")
        return text if status == 200 else None

    def _ask(self, method: str, path: str, headers: Mapping[str, str]) -> "tuple[int, str]":
        # No proxy: the address is that of the machine itself.
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_ANSWER_SECONDS)
        try:
            connection.request(method, path, headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read(_MOST_BYTES).decode("utf-8", "replace")
        finally:
            connection.close()


def read_notice(service: MetadataService) -> Optional[Notice]:
    """Return what the machine says of its end now; None for nothing.

    Raises OSError, HTTPException, or ValueError for an answer that is none.
    """
    text = service.get(_INTERRUPTION_PATH)
    if text is not None:
        return Notice(contract.NOTICE_INTERRUPTION, _time_in(text, "time"))
    text = service.get(_REBALANCE_PATH)
    if text is not None:
        return Notice(contract.NOTICE_REBALANCE, _time_in(text, "noticeTime"))
    return None


def _time_in(text: str, name: str) -> float:
    try:
        told = json.loads(text)[name]
        return float(calendar.timegm(time.strptime(told, "%Y-%m-%dT%H:%M:%SZ")))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{text!r} has no {name}") from error
