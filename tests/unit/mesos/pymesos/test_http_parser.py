"""The vendored http-parser: responses come out the same wherever the network cut them."""

import itertools
import json

import pytest
from http_parser.http import HttpParser
from hypothesis import given
from hypothesis import strategies as st

RECORD = json.dumps({"type": "HEARTBEAT", "text": "zwölf"}, ensure_ascii=False).encode()
BODY = b"%d\n%s" % (len(RECORD), RECORD)
RESPONSE = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nMesos-Stream-Id: abc -def\r\n\r\n"
    b"5;extension\r\n" + BODY[:5] + b"\r\n%x\r\n" % (len(BODY) - 5) + BODY[5:] + b"\r\n0\r\n\r\n"
)


def parse(pieces):
    parser, body = HttpParser(), b""
    for piece in pieces:
        assert parser.execute(piece, len(piece)) == len(piece)
        if parser.is_partial_body():
            body += parser.recv_body()
    return parser, body


@given(st.lists(st.integers(0, len(RESPONSE)), max_size=8))
def test_22_a_response_cut_anywhere_is_the_same_response(cuts):
    edges = [0, *sorted(cuts), len(RESPONSE)]
    parser, body = parse([RESPONSE[start:end] for start, end in itertools.pairwise(edges)])
    assert body == BODY
    assert parser.get_status_code() == 200
    assert parser.is_chunked()
    assert parser.get_headers()["Mesos-Stream-Id"] == "abc -def"
    assert parser.is_message_complete()


def test_22_every_single_cut_leaves_header_values_whole():
    for cut in range(len(RESPONSE)):
        parser, _ = parse([RESPONSE[:cut], RESPONSE[cut:]])
        assert parser.get_headers()["Transfer-Encoding"] == "chunked"


@pytest.mark.parametrize(
    ("response", "body"),
    [
        (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 3\r\n\r\nwho", b"who"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
def test_counted_bodies_end_where_their_headers_say(response, body):
    parser, received = parse([response])
    assert received == body
    assert parser.is_message_complete()


def test_a_body_without_length_lasts_until_the_connection_ends():
    parser, received = parse([b"HTTP/1.0 200 OK\r\n\r\n", b"one", b"two"])
    assert received == b"onetwo"
    assert not parser.is_message_complete()


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n",
    ],
)
def test_what_is_no_response_is_an_error_and_stays_one(garbage):
    parser = HttpParser()
    assert parser.execute(garbage, len(garbage)) == 0
    assert parser.get_errno()
    assert parser.execute(b"more", 4) == 0
