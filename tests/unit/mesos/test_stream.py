"""Reading the stream: any cut of chunks and segments gives the same events."""

import io
import itertools
import json
from http.client import HTTPException, HTTPResponse
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.mesos.stream import (
    DEFAULT_HEARTBEAT_SECONDS,
    StreamEnded,
    SubscriptionStream,
    heartbeat_seconds,
)

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nMesos-Stream-Id: s\r\n\r\n"


class Segments(io.RawIOBase):
    """Gives what a socket gives: one segment per read."""

    def __init__(self, segments):
        self.segments = [segment for segment in segments if segment]

    def readable(self):
        return True

    def readinto(self, buffer):
        if not self.segments:
            return 0
        data = self.segments[0][: len(buffer)]
        self.segments[0] = self.segments[0][len(data) :]
        if not self.segments[0]:
            del self.segments[0]
        buffer[: len(data)] = data
        return len(data)


def cut(data, places):
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def records(events):
    encoded = [json.dumps(event, ensure_ascii=False).encode() for event in events]
    return b"".join(b"%d\n%s" % (len(data), data) for data in encoded)


def stream_of(segments):
    """Open a stream that reads these segments of one response."""
    reader = io.BufferedReader(Segments(segments))
    response = HTTPResponse(SimpleNamespace(makefile=lambda _mode: reader))
    response.begin()
    connection = SimpleNamespace(
        request=lambda *_args, **_options: None,
        getresponse=lambda: response,
        close=lambda: None,
    )
    stream = SubscriptionStream(connection)
    assert stream.open({}, {}) == "s"
    return stream


def events_of(segments):
    """Return all events, and how the stream ended."""
    stream, events = stream_of(segments), []
    try:
        for event in stream.events():
            events.append(event)
    except (StreamEnded, HTTPException) as error:
        return events, str(error)
    finally:
        stream.close()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
events = st.lists(st.dictionaries(texts, texts, max_size=3), max_size=6)
places = st.lists(st.integers(0, 10_000), max_size=12)


@given(events, places, places)
def test_cuts_change_nothing(sent, chunk_places, segment_places):
    chunks = [chunk for chunk in cut(records(sent), chunk_places) if chunk]
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    received, why = events_of(cut(HEAD + body + b"0\r\n\r\n", segment_places))
    assert received == sent
    assert why == "the master closed the stream"


@given(events.filter(bool), st.integers(0, 10_000), places)
def test_a_stream_that_breaks_anywhere_gives_what_was_complete(sent, end, segment_places):
    whole = records(sent)
    broken = whole[: end % len(whole)]
    body = b"%x\r\n%s" % (len(whole), broken)
    received, _ = events_of(cut(HEAD + body, segment_places))
    assert received == sent[: len(received)]
    assert len(received) < len(sent)
    assert len(records(sent[: len(received) + 1])) > len(broken)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (b"hello world, no length\n", "where a record's length belongs"),
        (b"-5\n{}", "where a record's length belongs"),
        (b"99999999999999\n", "where a record's length belongs"),
        (b"2000000000\n{}", "a record of 2000000000 bytes"),
        (b"3\n{]}", "no JSON"),
        (b"100000\n" + b"[" * 100_000, "nested too deeply"),
        (b"2\n[]", "no JSON object"),
        (b"9\n{}", "middle of a record"),
    ],
)
def test_what_is_no_record_ends_the_stream(record, why):
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(record), record)
    received, ended = events_of([HEAD + body])
    assert received == []
    assert why in ended


@pytest.mark.parametrize("subscribed", [{}, {"heartbeat_interval_seconds": 0}])
def test_a_master_that_names_no_interval_beats_every_fifteen_seconds(subscribed):
    assert heartbeat_seconds(subscribed) == DEFAULT_HEARTBEAT_SECONDS


@pytest.mark.parametrize("length", [b"-9", b"5" * 90])
def test_a_chunk_of_no_length_that_can_be_ends_the_stream(length):
    """Found by ``tests.fuzz``: http.client raised what ended the thread."""
    stream = stream_of([HEAD + length + b"\r\n5\n{}\r\n"])
    with pytest.raises((StreamEnded, HTTPException)):
        next(stream.events())
