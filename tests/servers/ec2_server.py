"""An EC2 server for tests: moto behind a door that adds what moto lacks, and orders of failures.

What the door adds is EC2's: a fleet's token makes it the same fleet each time (EC2 User Guide,
"Ensuring idempotency"), a fleet may get less than it asked for and says why, what was just made is
missing from descriptions for a while.
"""

import io
import logging
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import boto3
from botocore.config import Config
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2 import ec2_backends
from moto.ec2.models.instances import StateReason
from moto.server import create_backend_app
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

KEY_ID, SECRET_KEY = "AKIATESTTESTTESTTEST", "very/secret+key"
REGION = "us-east-1"
_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


@dataclass(frozen=True)
class Refusal:
    """EC2's answer to a call that it does not carry out."""

    code: str
    message: str
    status: int = 400


class Ec2Server:
    """A moto EC2. Close it."""

    def __init__(self) -> None:
        #: Says of a call (action, fields) whether it is refused.
        self.refusal: Callable[[str, dict[str, str]], Refusal | None] = lambda action, fields: None
        #: A fleet gets no more machines than that, and is told why.
        self.room: int | None = None
        #: In the subnets of these zones it gets none.
        self.full: set[str] = set()
        #: Spot prices by zone, of every type; empty: moto's.
        self.spot_prices: dict[str, float] = {}
        #: When it first said that an instance has ended, by its own clock (unix seconds).
        self.said_ended: dict[str, int] = {}
        self.shortage = Refusal("InsufficientInstanceCapacity", "There is no Spot capacity.")
        #: So many descriptions of instances are answered as if there were none.
        self.stale = 0
        #: Whether the next fleet is made and its answer gets lost.
        self.loses_answer = False
        #: Called when a call has made or ended instances.
        self.on_change: Callable[[], None] = lambda: None
        #: Each call: its action and fields.
        self.calls: list[tuple[str, dict[str, str]]] = []
        self._fleets: dict[str, tuple[dict[str, str], bytes]] = {}
        self._app = create_backend_app("ec2")
        self._server = _Server("127.0.0.1", 0, self._answer, _Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        # No test waits for a retry here: how the client slows down is botocore's business.
        self.client = boto3.session.Session().client(
            "ec2",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET_KEY,
            config=Config(retries={"total_max_attempts": 1}),
        )

    def close(self) -> None:
        self.client.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def set_clock(self, ahead: float) -> None:
        """Have it tell a time that is so many seconds ahead of this machine's."""
        self._server.clock_ahead = ahead

    @property
    def instances(self) -> list[Any]:
        """Return moto's instances, those too that have ended."""
        found: list[Any] = ec2_backends[DEFAULT_ACCOUNT_ID][REGION].all_instances()
        return found

    def take_back(self, instance_ids: Iterable[str]) -> None:
        """Do what EC2 does to spot machines: they end, and it says that it was EC2."""
        found = [instance for instance in self.instances if instance.id in set(instance_ids)]
        for instance in found:
            instance.terminate()
            code = "Server.SpotInstanceTermination"
            instance._reason = code
            instance.state_reason = StateReason(f"{code}: Spot instance termination", code)
        self.on_change()

    def actions(self) -> list[str]:
        return [action for action, _ in self.calls]

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        fields = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
        action = fields.get("Action", "")
        self.calls.append((action, fields))
        refused = self.refusal(action, fields)
        if refused is not None:
            return _refused(refused, start_response)
        if action == "CreateFleet":
            return self._fleet(environ, fields, start_response)
        if action == "DescribeInstances" and self.stale:
            self.stale -= 1
            nothing = "<reservationSet/></DescribeInstancesResponse>"
            text = f'<DescribeInstancesResponse xmlns="{_NAMESPACE}">{nothing}'
            return _answered(text, start_response)
        if action == "DescribeSpotPriceHistory" and self.spot_prices:
            return _answered(self._prices(fields), start_response)
        if action == "DescribeInstances":
            self._note_ended()
        answer = self._pass(environ, fields, start_response)
        if action == "TerminateInstances":
            answer = [b"".join(answer)]
            self.on_change()
        return answer

    def _note_ended(self) -> None:
        """Note when it is said what has ended: the answer's header says the same second."""
        now = int(time.time())
        for instance in self.instances:
            if instance.state == "terminated":
                self.said_ended.setdefault(instance.id, now)
        self._server.answer.at = now

    def _prices(self, fields: dict[str, str]) -> str:
        kinds = [value for name, value in fields.items() if name.startswith("InstanceType.")]
        items = "".join(
            f"<item><instanceType>{kind}</instanceType><availabilityZone>{zone}</availabilityZone>"
            f"<productDescription>Linux/UNIX</productDescription><spotPrice>{price}</spotPrice>"
            "<timestamp>2026-01-01T00:00:00.000Z</timestamp></item>"
            for zone, price in self.spot_prices.items()
            for kind in kinds
        )
        return (
            f'<DescribeSpotPriceHistoryResponse xmlns="{_NAMESPACE}"><spotPriceHistorySet>{items}'
            "</spotPriceHistorySet></DescribeSpotPriceHistoryResponse>"
        )

    def _pass(
        self, environ: dict[str, Any], fields: dict[str, str], start_response: Any
    ) -> Iterable[bytes]:
        body = urllib.parse.urlencode(fields).encode()
        passed = {**environ, "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        answer: Iterable[bytes] = self._app(passed, start_response)
        return answer

    def _fleet(
        self, environ: dict[str, Any], fields: dict[str, str], start_response: Any
    ) -> Iterable[bytes]:
        token = fields["ClientToken"]
        said = {name: value for name, value in fields.items() if name != "ClientToken"}
        if token in self._fleets:
            before, answer = self._fleets[token]
            if before != said:
                told = Refusal("IdempotentParameterMismatch", "The token was used otherwise.")
                return _refused(told, start_response)
            return _answered(answer.decode(), start_response)
        name = "TargetCapacitySpecification.TotalTargetCapacity"
        asked = int(fields[name])
        count = asked if self.room is None else min(asked, self.room)
        backend = ec2_backends[DEFAULT_ACCOUNT_ID][REGION]
        subnets = [value for name, value in fields.items() if name.endswith(".SubnetId")]
        zones = {backend.get_subnet(subnet).availability_zone for subnet in subnets}
        if zones and zones <= self.full:
            count = 0
        text = f'<CreateFleetResponse xmlns="{_NAMESPACE}"><fleetId>fleet-0</fleetId>'
        text += "</CreateFleetResponse>"
        if count:
            made = self._pass(environ, {**fields, name: str(count)}, lambda *_: None)
            text = b"".join(made).decode()
        if count < asked:
            error = (
                f"<errorSet><item><errorCode>{self.shortage.code}</errorCode><errorMessage>"
                f"{escape(self.shortage.message)}</errorMessage></item></errorSet>"
            )
            text = text.replace("</CreateFleetResponse>", f"{error}</CreateFleetResponse>")
        self._fleets[token] = (said, text.encode())
        self.on_change()
        if self.loses_answer:
            self.loses_answer = False
            return _refused(Refusal("InternalError", "Try again.", 500), start_response)
        return _answered(text, start_response)


def _answered(text: str, start_response: Any, status: str = "200 OK") -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/xml")])
    return [text.encode()]


def _refused(refusal: Refusal, start_response: Any) -> Iterable[bytes]:
    text = (
        f"<Response><Errors><Error><Code>{refusal.code}</Code><Message>"
        f"{escape(refusal.message)}</Message></Error></Errors></Response>"
    )
    return _answered(text, start_response, f"{refusal.status} Refused")


class _Server(ThreadedWSGIServer):
    daemon_threads = True
    clock_ahead = 0.0

    def __init__(self, *told: Any) -> None:
        super().__init__(*told)
        #: Of the answer that a thread gives: when it was made (``at``), where that is noted.
        self.answer = threading.local()


class _Quiet(WSGIRequestHandler):
    server: _Server

    def date_time_string(self, timestamp: float | None = None) -> str:
        now = getattr(self.server.answer, "at", time.time())
        return super().date_time_string(int(timestamp or now + self.server.clock_ahead))

    def log(self, *_: object) -> None:
        logging.getLogger("ec2_server").debug("a request")
