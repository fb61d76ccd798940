"""Plays a recording of a real Mesos against another master, and compares what comes back.

A recording is read in order: a request is sent with its recorded ids replaced by the live ones, an
event is waited for and compared. Ids, uuids and ports are bound at first sight; every other text
must be equal, every number must be of the recorded type, every object must have the recorded
keys. Updates of one task must come in the recorded order. Durations are scaled down.
"""

import contextlib
import http.client
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from data_files import MESOS_RECORDINGS
from masters.recorded_shapes import TOKEN, Ids, Mismatch, by_name

Json = dict[str, Any]

#: An event that comes this short before a request in the recording may be its answer.
_CAUSED_WITHIN_SECONDS = 0.05
_DEADLINE_SECONDS = 8.0


def read(name: str) -> list[Json]:
    """Return the lines of a recording."""
    path = MESOS_RECORDINGS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def with_note(lines: list[Json], note: str, *, before: Callable[[Json], bool]) -> list[Json]:
    """Return ``lines`` with a note in front of the first one that ``before`` holds for."""
    index = next(i for i, line in enumerate(lines) if before(line))
    return [*lines[:index], {"t": lines[index]["t"], "note": note}, *lines[index:]]


class LiveStream:
    """One live subscription, read by a thread of its own."""

    def __init__(self, name: str, connection: http.client.HTTPConnection, response: Any) -> None:
        self.name = name
        self.stream_id = response.getheader("Mesos-Stream-Id")
        self.events: list[Json] = []
        self.closed = False
        self.changed = threading.Condition()
        self._seen: set[str] = set()
        self._connection = connection
        self._response = response
        self._socket = connection.sock
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while True:
                length = self._response.readline()
                if not length:
                    break
                event = json.loads(self._response.read(int(length)))
                self._put(event)
        except (OSError, http.client.HTTPException, ValueError):
            pass  # However it ended, it has ended: that is what `closed` says.
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _put(self, event: Json) -> None:
        with self.changed:
            self.events.append(event)
            self.changed.notify_all()

    def close(self) -> None:
        """Go away as a scheduler does that dies."""
        if self._socket is not None:
            # The other side may have been faster.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._response.close()
        self._connection.close()


class Player:
    """Plays one recording.

    Args:
        lines: of ``read``.
        master: ``host:port``.
        scale: what recorded durations are multiplied with in requests.
        on_note: called for each ``note`` line with its text; does to the cluster what it says.
        on_request: called with each line before its request is sent.
        skip_event: which events not to wait for.
        skip_request: which requests not to send.
        exact_offers: whether offers must have the recorded amounts.
        used_offers_only: whether to wait only for offers that a call names. When and in how many
            pieces ended tasks give their resources back is chance.
    """

    def __init__(
        self,
        lines: list[Json],
        master: Callable[[], str],
        *,
        scale: float = 0.1,
        on_note: Callable[[str], None] = lambda _: None,
        on_request: Callable[[Json], None] = lambda _: None,
        skip_event: Callable[[Json], bool] = lambda _: False,
        skip_request: Callable[[Json], bool] = lambda _: False,
        exact_offers: bool = True,
        used_offers_only: bool = False,
    ) -> None:
        self._lines = [line for line in lines if "scenario" not in line]
        self._used = set(TOKEN.findall(json.dumps([line.get("request") for line in lines])))
        self._used_offers_only = used_offers_only
        self._master = master
        self._scale = scale
        self._on_note = on_note
        self._on_request = on_request
        self._skip_event = skip_event
        self._skip_request = skip_request
        self._exact_offers = exact_offers
        self.ids = Ids()
        self.streams: dict[str, LiveStream] = {}
        self.all_streams: list[LiveStream] = []
        self._waiting: list[Json] = []
        #: Task id -> recorded uuid of its last update, until that is acknowledged.
        self._unacknowledged: dict[str, str] = {}

    def play(self) -> None:
        """Play it to its end.

        Raises:
            Mismatch: something is not as recorded.
        """
        try:
            for line in self._lines:
                self._play(line)
            for expected in self._waiting:
                self._expect(expected)
        finally:
            for stream in self.all_streams:
                stream.close()

    def _play(self, line: Json) -> None:
        if "request" in line:
            if self._skip_request(line["request"]):
                return
            self._catch_up(line)
            self._on_request(line)
            self._request(line)
        elif "event" in line:
            if line["event"]["type"] != "HEARTBEAT" and not self._skip_event(line["event"]):
                self._waiting.append(line)
        elif "stream_closed" in line:
            self._closed(line)
        elif "note" in line:
            self._catch_up(line)
            self._on_note(line["note"])

    def _catch_up(self, line: Json) -> None:
        """Wait for the events that came before, but for those that the request causes."""
        caused, self._waiting = self._waiting, []
        for index, expected in enumerate(caused):
            soon = line["t"] - expected["t"] < _CAUSED_WITHIN_SECONDS
            if (soon and _may_be_an_answer(expected, line)) or self._held_back(expected):
                self._waiting.append(expected)
                continue
            try:
                self._expect(expected)
            except Mismatch as error:
                raise Mismatch(f"before t={line['t']}, event {index}: {error}") from error

    def _held_back(self, line: Json) -> bool:
        """Say whether an update cannot come yet: the one before it is not acknowledged.

        The recorder wrote a request when its answer came, so what the request set free may stand
        before it.
        """
        status = line.get("event", {}).get("update", {}).get("status", {})
        before = self._unacknowledged.get(status.get("task_id", {}).get("value"))
        return "uuid" in status and before not in (None, status["uuid"])

    # -- requests ------------------------------------------------------------------------------

    def _request(self, line: Json) -> None:
        request, recorded = line["request"], line["response"]
        body = request.get("body")
        if isinstance(body, dict) and body.get("type") == "ACKNOWLEDGE":
            self._unacknowledged.pop(body["acknowledge"]["task_id"]["value"], None)
        if isinstance(body, dict):
            body = self.ids.translate(_scaled(body, self._scale))
        text = body if isinstance(body, str) else json.dumps(body) if body is not None else None
        headers = request.get(
            "headers", {"Content-Type": "application/json", "Accept": "application/json"}
        )
        connection = http.client.HTTPConnection(self._master(), timeout=_DEADLINE_SECONDS)
        connection.request(
            request.get("method", "POST"),
            request.get("path", "/api/v1/scheduler"),
            text,
            self.ids.translate(headers) if text is not None else headers,
        )
        response = connection.getresponse()
        self._compare_status(line, response)
        subscribing = isinstance(body, dict) and body.get("type") == "SUBSCRIBE"
        if subscribing and response.status == 200:
            self._subscribed(line, connection, response)
            return
        data = response.read().decode()
        connection.close()
        if isinstance(recorded.get("body"), dict):
            self.ids.compare(recorded["body"], json.loads(data), "response")
        elif "body_text" in recorded:
            self.ids.compare_text(recorded["body_text"], data, f"t={line['t']} response")

    def send(self, name: str, body: Json) -> int:
        """Send a call of the test's own on a subscription; return the status of the answer."""
        stream = self.streams[name]
        connection = http.client.HTTPConnection(self._master(), timeout=_DEADLINE_SECONDS)
        headers = {"Content-Type": "application/json", "Mesos-Stream-Id": stream.stream_id}
        connection.request("POST", "/api/v1/scheduler", json.dumps(body), headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status

    def _compare_status(self, line: Json, response: http.client.HTTPResponse) -> None:
        recorded = line["response"]
        if response.status != recorded["status"]:
            raise Mismatch(
                f"t={line['t']} {line['request']}: status {response.status}"
                f" {response.read()!r}, recorded {recorded['status']}"
            )
        for name in ("Content-Type", "Allow", "WWW-Authenticate", "Transfer-Encoding"):
            if name in recorded.get("headers", {}):
                live, expected = response.getheader(name), recorded["headers"][name]
                if live != expected:
                    raise Mismatch(f"t={line['t']} header {name}: {live!r}, recorded {expected!r}")

    def _subscribed(
        self, line: Json, connection: http.client.HTTPConnection, response: Any
    ) -> None:
        name = line.get("from", f"t={line['t']}")
        stream = LiveStream(name, connection, response)
        self.all_streams.append(stream)
        if "body_text" in line["response"]:
            first = json.loads(line["response"]["body_text"].partition("\n")[2])
            self.streams[name] = stream
            self._expect({"t": line["t"], "to": name, "event": first})
            return
        self.streams[name] = stream
        self.ids.bind(line["response"]["headers"]["Mesos-Stream-Id"], stream.stream_id)

    # -- events --------------------------------------------------------------------------------

    def _closed(self, line: Json) -> None:
        if line["stream_closed"] == "AttributeError":
            # The recorder dropped its own connection.
            self._catch_up({"t": line["t"] + 1})
            self.streams[line["to"]].close()
        else:
            self._waiting.append(line)

    def _expect(self, line: Json) -> None:
        stream = self.streams[line["to"]]
        if "stream_closed" in line:
            self._wait(stream, lambda: stream.closed or None, f"{line} (still open)")
        elif line["event"]["type"] == "OFFERS":
            for offer in line["event"]["offers"]["offers"]:
                if not self._used_offers_only or offer["id"]["value"] in self._used:
                    self._expect_offer(stream, offer)
        else:
            self._expect_event(stream, line["event"])

    def _wait(self, stream: LiveStream, found: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + _DEADLINE_SECONDS
        with stream.changed:
            while True:
                result = found()
                if result is not None:
                    return result
                left = deadline - time.monotonic()
                if left <= 0 or stream.closed:
                    raise Mismatch(f"did not come: {what}; there is {stream.events}")
                stream.changed.wait(left)

    def _expect_event(self, stream: LiveStream, recorded: Json) -> None:
        def take() -> Json | None:
            for index, event in enumerate(stream.events):
                if _corresponds(self.ids.translate(recorded), event):
                    return stream.events.pop(index)
            return None

        live = self._wait(stream, take, str(recorded))
        self.ids.compare(recorded, live, recorded["type"])
        status = recorded.get("update", {}).get("status", {})
        if "uuid" in status:
            self._unacknowledged[status["task_id"]["value"]] = status["uuid"]

    def _expect_offer(self, stream: LiveStream, recorded: Json) -> None:
        def take() -> Json | None:
            for event in stream.events:
                offers = event["offers"]["offers"] if event["type"] == "OFFERS" else []
                for index, offer in enumerate(offers):
                    if self._same_offer(self.ids.translate(recorded), offer):
                        return dict(offers.pop(index))
            self._give_back_pieces(stream, self.ids.translate(recorded))
            return None

        live = self._wait(stream, take, f"offer {recorded}")
        if not self._exact_offers:
            recorded, live = _without_amounts(recorded), _without_amounts(live)
        self.ids.compare(recorded, live, "offer")

    def _give_back_pieces(self, stream: LiveStream, recorded: Json) -> None:
        """Decline an offer that came in two pieces, so that it comes again in one.

        What an ended task gives back is offered on its own by an allocation cycle that comes before
        our answer to an offer of the agent's rest (as by Mesos, ``unacked_retry``): on a busy
        machine, at any time.
        """
        found = [
            (events["offers"]["offers"], offer)
            for events in stream.events
            if events["type"] == "OFFERS"
            for offer in events["offers"]["offers"]
            if offer["hostname"] == recorded["hostname"]
            and offer.get("allocation_info") == recorded.get("allocation_info")
        ]
        for (first_list, first), (second_list, second) in itertools.combinations(found, 2):
            if _sum(_amounts(first), _amounts(second)) == _amounts(recorded):
                first_list.remove(first)
                second_list.remove(second)
                ids = [first["id"], second["id"]]
                decline = {"offer_ids": ids, "filters": {"refuse_seconds": 0}}
                framework_id = first["framework_id"]
                body = {"type": "DECLINE", "framework_id": framework_id, "decline": decline}
                self.send(stream.name, body)
                return

    def _same_offer(self, recorded: Json, live: Json) -> bool:
        if recorded["hostname"] != live["hostname"]:
            return False
        if recorded.get("allocation_info") != live.get("allocation_info"):
            return False
        if ("unavailability" in recorded) != ("unavailability" in live):
            return False
        amounts = _amounts(recorded) == _amounts(live)
        return amounts if self._exact_offers else set(_amounts(live)) == set(_amounts(recorded))


def _amounts(offer: Json) -> Mapping[str, Any]:
    return {by_name(one): one.get("scalar", one.get("ranges", {})) for one in offer["resources"]}


def _sum(one: Mapping[str, Any], other: Mapping[str, Any]) -> Json | None:
    """Return the amounts of two offers as one; None where ranges would have to be joined."""
    total = dict(one)
    for name, amount in other.items():
        if name not in total:
            total[name] = amount
        elif "value" in amount and "value" in total[name]:
            # Mesos counts in thousandths.
            total[name] = {"value": round(total[name]["value"] + amount["value"], 3)}
        else:
            return None
    return total


def _without_amounts(offer: Json) -> Json:
    resources = [{**one, "scalar": {}} if "scalar" in one else one for one in offer["resources"]]
    return {**offer, "resources": resources}


def _corresponds(recorded: Json, live: Json) -> bool:
    if recorded["type"] != live["type"]:
        return False
    if recorded["type"] == "UPDATE":
        one, other = recorded["update"]["status"], live["update"]["status"]
        # The first that came for the task, whatever it says: so the order is compared, too.
        same_task = bool(one["task_id"] == other["task_id"])
        return same_task and ("uuid" in one) == ("uuid" in other)
    if recorded["type"] in ("RESCIND", "RESCIND_INVERSE_OFFER"):
        return recorded == live
    if recorded["type"] == "UPDATE_OPERATION_STATUS":
        one = recorded["update_operation_status"]["status"]
        return bool(
            one["operation_id"] == live["update_operation_status"]["status"]["operation_id"]
        )
    return True


_ANSWERS = ("REASON_RECONCILIATION", "REASON_INVALID_OFFERS", "REASON_TASK_INVALID")


def _may_be_an_answer(line: Json, request: Json) -> bool:
    if "stream_closed" in line:
        return True
    event = line["event"]
    if request.get("from") == "operator":
        return event["type"] in ("UPDATE", "RESCIND", "FAILURE", "RESCIND_INVERSE_OFFER")
    if event["type"] == "UPDATE":
        status = event["update"]["status"]
        return bool(status["source"] == "SOURCE_AGENT" or status.get("reason") in _ANSWERS)
    if event["type"] == "UPDATE_OPERATION_STATUS":
        return "uuid" not in event["update_operation_status"]["status"]
    return bool(event["type"] == "ERROR")


_SLEEP = re.compile(r"\bsleep (\d*\.?\d+)")


def _scaled(value: Any, scale: float) -> Any:
    """Scale the durations in a request. Sleeps of 20 s and more are never waited for."""
    if isinstance(value, list):
        return [_scaled(one, scale) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, one in value.items():
        if key in ("refuse_seconds", "failover_timeout", "interval_seconds"):
            found[key] = one * scale
        elif key == "grace_period" and "nanoseconds" in one:
            found[key] = {"nanoseconds": int(one["nanoseconds"] * max(scale, 0.2))}
        elif key == "value" and isinstance(one, str):
            found[key] = _SLEEP.sub(lambda found: _scaled_sleep(found, scale), one)
        else:
            found[key] = _scaled(one, scale)
    return found


def _scaled_sleep(found: re.Match[str], scale: float) -> str:
    seconds = float(found[1])
    return f"sleep {seconds * scale:.3f}" if seconds < 20 else found[0]
