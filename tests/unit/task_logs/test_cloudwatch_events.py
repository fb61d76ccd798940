"""Lines as events of CloudWatch Logs, and events in requests that it takes."""

from dcos_tensorflow.task.output.shipping.cloudwatch_sink import (
    EVENT_OVERHEAD,
    MAX_EVENT_BYTES,
    MAX_EVENTS,
    MAX_REQUEST_BYTES,
    batches,
    events,
)


def messages(content, marks=((0, 1.0),)):
    return [event["message"] for event in events(content, marks)]


def test_each_line_is_an_event():
    assert messages(b"one\ntwo\r\nthree\rfour") == ["one", "two", "three", "four"]


def test_empty_lines_are_none():
    assert messages(b"\n\n one \n  \n") == [" one "]


def test_a_long_line_becomes_several_events():
    found = messages(b"x" * 3 * MAX_EVENT_BYTES)
    assert "".join(found) == "x" * 3 * MAX_EVENT_BYTES
    assert max(map(len, found)) <= MAX_EVENT_BYTES


def test_bytes_that_are_no_text_stay_within_the_limit():
    assert all(len(text.encode()) <= MAX_EVENT_BYTES for text in messages(b"\xff" * 600_000))


def test_a_line_has_the_time_at_which_it_came():
    found = list(events(b"a\nb\nc\n", ((0, 1.0), (2, 2.5))))
    assert [event["timestamp"] for event in found] == [1000, 2500, 2500]


def test_times_never_go_back():
    found = list(events(b"a\nb\n", ((0, 5.0), (2, 3.0))))
    assert [event["timestamp"] for event in found] == [5000, 5000]


def test_requests_are_within_the_limits():
    lines = b"\n".join(b"y" * 500 for _ in range(30_000))
    found = list(batches(events(lines, ((0, 1.0),))))
    assert sum(map(len, found)) == 30_000
    assert max(map(len, found)) <= MAX_EVENTS
    assert max(sum(len(e["message"]) + EVENT_OVERHEAD for e in b) for b in found) <= (
        MAX_REQUEST_BYTES
    )


def test_many_short_lines_are_bounded_by_their_number():
    found = list(batches(events(b"z\n" * 25_000, ((0, 1.0),))))
    assert [len(batch) for batch in found] == [10_000, 10_000, 5_000]


def test_a_request_spans_less_than_a_day():
    found = list(batches(events(b"a\nb\n", ((0, 0.0), (2, 86_400.0)))))
    assert [len(batch) for batch in found] == [1, 1]
