"""Ships parts of a task's output as events of CloudWatch Logs: one stream per attempt.

Each line is an event with the time at which it came. The limits are those of PutLogEvents
(docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html): 10,000 events
and 1,048,576 bytes a request, 26 of them for each event, in the order of time, within 24 hours.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterator, List, Sequence

from dcos_tensorflow.task.output.shipping.spool import Mark, SpooledPart
from dcos_tensorflow.task.storage.s3.errors import StorageError, problem_error, storage_error
from dcos_tensorflow.task.storage.s3.location import S3Settings
from dcos_tensorflow.task.storage.s3.retry import Retrier

MAX_EVENTS = 10_000
MAX_REQUEST_BYTES = 1_048_576
EVENT_OVERHEAD = 26
#: A longer line becomes several events.
MAX_EVENT_BYTES = 256 * 1024 - EVENT_OVERHEAD
#: A byte that is no UTF-8 becomes three.
_PIECE_BYTES = MAX_EVENT_BYTES // 3
#: PutLogEvents is throttled per account; a task must not take what others need.
SECONDS_BETWEEN_REQUESTS = 0.25

_LINE_END = re.compile(rb"\r\n|[\r\n]")
_NOT_IN_NAMES = re.compile(r"[:*]")
_EXISTS = "ResourceAlreadyExistsException"

Event = Dict[str, Any]


class CloudWatchSink:
    """One stream of ``group``; both are made when they are missing.

    ``pause`` waits so many seconds between two requests, and may raise StorageError.
    """

    def __init__(
        self, client: Any, retrier: Retrier, group: str, stream: str, pause: Callable[[float], None]
    ) -> None:
        self._client = client
        self._retrier = retrier
        self._group = group
        self._stream = _NOT_IN_NAMES.sub("_", stream)
        self._pause = pause
        self._made = False
        self._path, self._sent = "", 0

    def ship(self, part: SpooledPart) -> None:
        """Put the lines of ``part``; one that was cut goes on where it stopped.

        Raises StorageError.
        """
        if self._path != part.path:
            self._path, self._sent = part.path, 0
        try:
            self._make_stream()
            for number, batch in enumerate(batches(events(part.read(), part.marks))):
                if number >= self._sent:
                    self._put(batch, number)
                    self._pause(SECONDS_BETWEEN_REQUESTS)
        except StorageError:
            # An operator may have removed the group; it is made again then.
            self._made = False
            raise

    def _put(self, batch: List[Event], number: int) -> None:
        answer = self._retrier.call(
            f"write to log stream {self._stream} of {self._group}",
            lambda: self._client.put_log_events(
                logGroupName=self._group, logStreamName=self._stream, logEvents=batch
            ),
        )
        # Those that were refused would be refused again.
        self._sent = number + 1
        if answer.get("rejectedLogEventsInfo"):
            raise problem_error(
                "clock_skew",
                f"CloudWatch Logs takes no events of this time: {answer['rejectedLogEventsInfo']}",
                "set the agent's clock (NTP)",
            )

    def _make_stream(self) -> None:
        if self._made:
            return
        group = {"logGroupName": self._group}
        try:
            self._make("log group", lambda: self._client.create_log_group(**group))
        except StorageError as error:
            # A task may be allowed to write into a group that another account made.
            if error.problem.kind != "denied":
                raise
        stream = {**group, "logStreamName": self._stream}
        self._make("log stream", lambda: self._client.create_log_stream(**stream))
        self._made = True

    def _make(self, what: str, request: Callable[[], Any]) -> None:
        def unless_there() -> None:
            try:
                request()
            except Exception as error:
                response = getattr(error, "response", None) or {}
                if response.get("Error", {}).get("Code") != _EXISTS:
                    raise

        self._retrier.call(f"make {what} {self._group}", unless_there)


def connect_logs(settings: S3Settings, region: str, endpoint_url: str) -> Any:
    """Return a boto3 client of CloudWatch Logs. Raises StorageError."""
    import boto3
    from botocore.config import Config

    try:
        return boto3.session.Session().client(
            "logs",
            region_name=region or settings.region or None,
            endpoint_url=endpoint_url or None,
            verify=settings.ca_bundle or None,
            config=Config(
                retries={"total_max_attempts": 1},
                connect_timeout=settings.connect_timeout,
                read_timeout=settings.read_timeout,
            ),
        )
    except Exception as error:
        if isinstance(error, ValueError) or "Region" in type(error).__name__:
            raise problem_error(
                "bad_endpoint",
                f"no client of CloudWatch Logs can be made: {type(error).__name__}",
                "set logs.region, and check logs.endpoint_url",
            ) from None
        raise storage_error(error, "make a client of CloudWatch Logs") from error


def events(content: bytes, marks: Sequence[Mark]) -> Iterator[Event]:
    """Yield the lines of ``content`` as events; empty ones are none (CloudWatch refuses them)."""
    position, next_mark, at = 0, 0, 0.0
    while position < len(content):
        found = _LINE_END.search(content, position)
        end, after = (found.start(), found.end()) if found else (len(content), len(content))
        while next_mark < len(marks) and marks[next_mark][0] <= position:
            at = max(at, marks[next_mark][1])
            next_mark += 1
        for start in range(position, end, _PIECE_BYTES):
            piece = content[start : min(end, start + _PIECE_BYTES)]
            text = piece.decode("utf-8", "replace")
            if text.strip():
                yield {"timestamp": int(at * 1000), "message": text}
        position = after


def batches(lines: Iterator[Event]) -> Iterator[List[Event]]:
    """Yield the events in requests within the limits."""
    batch: List[Event] = []
    size = 0
    for event in lines:
        needed = len(event["message"].encode()) + EVENT_OVERHEAD
        late = batch and event["timestamp"] - batch[0]["timestamp"] >= 23 * 3_600_000
        if batch and (len(batch) >= MAX_EVENTS or size + needed > MAX_REQUEST_BYTES or late):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += needed
    if batch:
        yield batch
