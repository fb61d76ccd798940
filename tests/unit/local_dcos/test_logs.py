"""Log files: the last lines, and what comes after them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from local_dcos.mesos import logs


def text(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "lines", "expected"),
    [
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 2, b"b\nc"),
        (b"a\nb\n", 10, b"a\nb\n"),
        (b"a\n", 0, b""),
        (b"", 3, b""),
        (b"\n\n\n", 2, b"\n\n"),
    ],
)
def test_the_last_lines(tmp_path: Path, content: bytes, lines: int, expected: bytes) -> None:
    start = logs.start_of_last(text(tmp_path / "stdout", content), lines)
    assert content[start:] == expected


def test_lines_longer_than_a_block_are_found(tmp_path: Path) -> None:
    long = b"x" * 200_000
    path = text(tmp_path / "stdout", long + b"\n" + long + b"\nend\n")
    assert logs.start_of_last(path, 2) == len(long) + 1


def followed(path: Path, start: int, count: int) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        stream = logs.events(path, start)
        async for chunk in stream:
            for line in chunk.decode().splitlines():
                if line.startswith("data: "):
                    found.append(json.loads(line.removeprefix("data: ")))
            if len(found) >= count:
                break
        await stream.aclose()  # type: ignore[attr-defined]
        return found

    return asyncio.run(read())


def test_a_reader_with_a_cursor_gets_what_follows_it(tmp_path: Path) -> None:
    path = text(tmp_path / "stdout", b"one\ntwo\nthree\n")
    first = followed(path, 0, 1)[0]
    rest = followed(path, int(first["cursor"]), 2)
    assert [one["fields"]["MESSAGE"] for one in [first, *rest]] == ["one", "two", "three"]


def test_a_file_that_was_begun_anew_is_followed_from_its_first_line(tmp_path: Path) -> None:
    async def read() -> list[str]:
        path = text(tmp_path / "stdout", b"the first file\n")
        found: list[str] = []
        async for chunk in logs.events(path, 0):
            for line in chunk.decode().splitlines():
                if line.startswith("data: "):
                    found.append(json.loads(line.removeprefix("data: "))["fields"]["MESSAGE"])
                    text(path, b"anew\n")
            if len(found) == 2:
                break
        return found

    assert asyncio.run(asyncio.wait_for(read(), 20)) == ["the first file", "anew"]


def test_an_event_stays_below_what_the_client_takes() -> None:
    events = logs.event(("\x00" * 100_000).encode(), 1, "stdout").split(b"\n\n")
    assert max(map(len, events)) < 64 * 1024
