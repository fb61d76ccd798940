"""An archive brings files, directories and links into its folder; what attacks is refused whole."""

import gzip
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from untrusted_input.archives import ArchiveRefused, Limits, unpack

LITTLE = Limits(unpacked=1_000_000, ratio=20, small=10_000, files=20, path=100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "sandbox"
    path.mkdir()
    return path


def unpacked(data: bytes, name: str, folder: Path) -> None:
    packed = folder.with_name(name)
    packed.write_bytes(data)
    with packed.open("rb") as file:
        unpack(file, name, str(folder), LITTLE)


def zipped(add: Callable[[zipfile.ZipFile], None]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        add(archive)
    return out.getvalue()


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(name)
    found.create_system, found.external_attr = 3, mode << 16
    return found


def tarred(*members: tuple[str, bytes, str, int], mode: str = "w") -> bytes:
    """Return a tar of (name, type, link or content, mode)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, kind, text, rights in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, rights
            content = text.encode() if kind == tarfile.REGTYPE else b""
            member.size = len(content)
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                member.linkname = text
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def file(name: str, text: str = "x", rights: int = 0o644) -> tuple[str, bytes, str, int]:
    return name, tarfile.REGTYPE, text, rights


def link(name: str, target: str) -> tuple[str, bytes, str, int]:
    return name, tarfile.SYMTYPE, target, 0o777


def claims(size: int) -> bytes:
    """Return a tar whose file is said to be of this size."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        member = tarfile.TarInfo("data")
        member.size = size
        # addfile would want the content.
        out.write(member.tobuf(tarfile.GNU_FORMAT))
        archive.offset += 512
    return out.getvalue()


def long_header() -> bytes:
    """Return a tar whose next name is said to be 8 GB long."""
    member = tarfile.TarInfo("././@LongLink")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 8_000_000_000
    return member.tobuf(tarfile.GNU_FORMAT) + bytes(10_240)


def headers_of_headers() -> bytes:
    member = tarfile.TarInfo("header")
    member.type, member.size = tarfile.XHDTYPE, 512
    return (member.tobuf(tarfile.PAX_FORMAT) + bytes(512)) * 5000 + bytes(1024)


def many(archive: zipfile.ZipFile) -> None:
    for number in range(30):
        archive.writestr(f"file-{number}", "")


def deep(archive: zipfile.ZipFile) -> None:
    archive.writestr("/".join("a" * 30) + "/x", "")
    archive.writestr("y", "")


def twice(archive: zipfile.ZipFile) -> None:
    archive.writestr("train.py", "1")
    archive.writestr("./train.py", "2")


def lying_size() -> bytes:
    """Return a zip that says its file is small, and unpacks to more than is allowed."""
    data = bytearray(zipped(lambda a: a.writestr("bomb", bytes(5_000_000))))
    for signature, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.index(signature) + place
        data[at : at + 4] = (100).to_bytes(4, "little")
    return bytes(data)


def before_its_beginning() -> bytes:
    """Return a zip whose file is said to begin before the archive does."""
    data = bytearray(zipped(lambda a: a.writestr("x", "")))
    at = data.index(b"PK\x05\x06") + 16
    data[at : at + 4] = (int.from_bytes(data[at : at + 4], "little") + 1000).to_bytes(4, "little")
    return bytes(data)


#: By what it tries: name, bytes, and what is said of it.
ATTACKS: dict[str, tuple[str, bytes, str]] = {
    "a zip that climbs": ("a.zip", zipped(lambda a: a.writestr("../x", "")), "outside"),
    "a tar that climbs": ("a.tar", tarred(file("../x")), "outside"),
    "a climb in the middle": ("a.tar", tarred(file("a/../../x")), "outside"),
    "an absolute path in a zip": ("a.zip", zipped(lambda a: a.writestr("/x", "")), "absolute"),
    "an absolute path in a tar": ("a.tar", tarred(file("/x")), "absolute"),
    "a link that climbs": ("a.tar", tarred(link("way", "../x")), "outside of it"),
    "an absolute link": ("a.tar", tarred(link("way", "/etc/passwd")), "outside of it"),
    "a link in a zip": (
        "a.zip",
        zipped(lambda a: a.writestr(entry("way", 0o120777), "../x")),
        "outside of it",
    ),
    "a link by way of a link": (
        "a.tar",
        # Read as text it stays; where the first link leads, two steps up are outside.
        tarred(link("deep/way", ".."), link("out", "deep/way/../x")),
        "outside of it",
    ),
    "a file through a link": (
        "a.tar",
        tarred(("d", tarfile.DIRTYPE, "", 0o755), link("way", "d"), file("way/x")),
        "'way', which is no directory",
    ),
    "a file in a file": ("a.tar", tarred(file("way"), file("way/x")), "no directory"),
    "a hard link to another's file": (
        "a.tar",
        tarred(("x", tarfile.LNKTYPE, "../outside", 0o644)),
        "no file of it",
    ),
    "a hard link to a link": (
        "a.tar",
        tarred(link("l", "d"), ("x", tarfile.LNKTYPE, "l", 0o644)),
        "no file of it",
    ),
    "a pipe": ("a.tar", tarred(("x", tarfile.FIFOTYPE, "", 0o644)), "no file, directory or link"),
    "a device": ("a.tar", tarred(("x", tarfile.CHRTYPE, "", 0o666)), "no file, directory or link"),
    "a device in a zip": (
        "a.zip",
        zipped(lambda a: a.writestr(entry("x", 0o020666), "")),
        "no file, directory or link",
    ),
    "a set-user-id bit": ("a.tar", tarred(file("x", rights=0o4755)), "act as its owner"),
    "a set-group-id bit": (
        "a.zip",
        zipped(lambda a: a.writestr(entry("x", 0o102755), "")),
        "act as its owner or group",
    ),
    "a name that is there twice": ("a.zip", zipped(twice), "'./train.py' twice"),
    "a link that replaces its file": ("a.tar", tarred(file("x"), link("x", "y")), "twice"),
    "a file over a directory": ("a.tar", tarred(file("d/x"), file("d")), "there is a directory"),
    "too many files": ("a.zip", zipped(many), "more than 20 files"),
    "too many directories": ("a.zip", zipped(deep), "more than 20 files"),
    "a long path": ("a.tar", tarred(file("d/" * 60 + "x")), "a name of 121 bytes"),
    "a long name": ("a.tar", tarred(file("d" * 300)), "a name of 300 bytes"),
    "a zip bomb": (
        "a.zip",
        zipped(lambda a: a.writestr("bomb", bytes(5_000_000))),
        "GB unpacked",
    ),
    "a zip bomb that lies": ("a.zip", lying_size(), "can be read"),
    "a file before the beginning": ("a.zip", before_its_beginning(), "unpacked|can be read"),
    "a tar bomb": ("a.tar.gz", tarred(file("bomb", "\0" * 900_000), mode="w:gz"), "GB unpacked"),
    "a size of many terabytes": ("a.tar", claims(10**14), "GB unpacked"),
    "a size below nothing": ("a.tar", claims(-512), "unpacked"),
    "a header that takes all memory": ("a.tar", long_header(), "a header of 8000000000 bytes"),
    "headers of headers": ("a.tar", headers_of_headers(), "cannot be unpacked"),
    "a gzip bomb": ("a.gz", gzip.compress(bytes(5_000_000)), "GB unpacked"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_and_leaves_nothing(attack: str, folder: Path) -> None:
    name, data, told = ATTACKS[attack]
    beside = set(folder.parent.iterdir()) | {folder.with_name(name)}
    with pytest.raises(ArchiveRefused, match=told):
        unpacked(data, name, folder)
    assert list(folder.iterdir()) == []
    assert set(folder.parent.iterdir()) == beside


def test_what_came_before_the_attack_is_removed(folder: Path) -> None:
    with pytest.raises(ArchiveRefused):
        unpacked(tarred(file("a/b/train.py"), file("../x")), "a.tar", folder)
    assert list(folder.iterdir()) == []


def test_a_link_that_is_there_already_is_not_written_through(folder: Path) -> None:
    (folder.parent / "precious").write_text("kept")
    (folder / "train.py").symlink_to(folder.parent / "precious")
    unpacked(tarred(file("train.py", "new")), "a.tar", folder)
    assert (folder / "train.py").read_text() == "new"
    assert (folder.parent / "precious").read_text() == "kept"


def test_a_directory_that_is_a_link_already_is_not_entered(folder: Path) -> None:
    (folder / "way").symlink_to(folder.parent)
    with pytest.raises(ArchiveRefused, match="no directory"):
        unpacked(tarred(file("way/x")), "a.tar", folder)
    assert not (folder.parent / "x").exists()


def test_a_pipe_that_is_there_already_is_replaced(folder: Path) -> None:
    os.mkfifo(folder / "train.py")
    unpacked(tarred(file("train.py", "new")), "a.tar", folder)
    assert (folder / "train.py").read_text() == "new"


def test_links_within_the_folder_are_made(folder: Path) -> None:
    found = tarred(
        link("latest", "runs/1"), file("runs/1/train.py"), link("runs/1/up", "../../latest")
    )
    unpacked(found, "a.tar", folder)
    assert (folder / "latest" / "up" / "train.py").read_text() == "x"


def test_hard_links_are_made(folder: Path) -> None:
    unpacked(tarred(file("a"), ("b", tarfile.LNKTYPE, "a", 0o644)), "a.tar", folder)
    assert (folder / "b").samefile(folder / "a")


def test_links_of_a_zip_are_links(folder: Path) -> None:
    def add(archive: zipfile.ZipFile) -> None:
        archive.writestr("a", "x")
        archive.writestr(entry("b", 0o120777), "a")

    unpacked(zipped(add), "a.zip", folder)
    assert os.readlink(folder / "b") == "a"


def test_others_get_no_right_to_write(folder: Path) -> None:
    unpacked(tarred(file("x", rights=0o777)), "a.tar", folder)
    assert stat.S_IMODE((folder / "x").stat().st_mode) == 0o755


def test_a_full_disk_is_not_the_archives_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(OSError, match="No space"):
        unpacked(tarred(file("x")), "a.tar", folder)
    assert list(folder.iterdir()) == []
