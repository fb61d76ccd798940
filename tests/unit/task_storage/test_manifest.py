"""Who may publish, what is kept, what may be deleted; and the documents in the bucket."""

import json

import pytest

from dcos_tensorflow.task.storage import manifest
from dcos_tensorflow.task.storage.manifest import (
    DocumentError,
    FileEntry,
    Manifest,
    Pointer,
    Published,
)
from dcos_tensorflow.task.storage_spec import Writer

SHA = "ab" * 32
FIRST = Writer("service", 1, "chief-0__a")
SECOND = Writer("service", 2, "chief-0__b")
FOLDERS = ("p/data", "p/manifests")


def line(name: str) -> Published:
    return Published(name, f"p/manifests/{name}.json", SHA, 1, 10, 1.0)


def made(name: str, *keys: str) -> Manifest:
    files = tuple(FileEntry(f"f{n}", key, 3, 8, (SHA,)) for n, key in enumerate(keys))
    return Manifest(name, 7, "tensorflow", 1.5, files)


def test_an_empty_place_is_free():
    assert manifest.unusable_reason(None, FIRST) == ""


def test_a_newer_attempt_takes_the_place_of_an_older_one():
    assert manifest.unusable_reason(Pointer(FIRST), SECOND) == ""


def test_an_older_attempt_loses():
    assert "attempt 2 publishes here" in manifest.unusable_reason(Pointer(SECOND), FIRST)


def test_the_same_writer_may_go_on():
    assert manifest.unusable_reason(Pointer(FIRST), FIRST) == ""


def test_of_two_owners_of_one_attempt_the_second_loses():
    assert manifest.unusable_reason(Pointer(FIRST), Writer("service", 1, "other")) != ""


def test_another_service_takes_over_whatever_its_attempt():
    assert manifest.unusable_reason(Pointer(SECOND), Writer("new", 1, "x")) == ""


def test_a_service_that_was_taken_over_never_comes_back():
    pointer = manifest.claimed(Pointer(SECOND), Writer("new", 1, "x"))
    assert "taken this place over" in manifest.unusable_reason(pointer, Writer("service", 9, "y"))


def test_a_claim_keeps_what_is_published():
    assert manifest.claimed(Pointer(FIRST, (line("a"),)), SECOND).published == (line("a"),)


def test_the_newest_is_first_and_no_more_than_keep_stay():
    pointer = Pointer(FIRST, (line("b"), line("a")))
    names = [kept.id for kept in manifest.with_newest(pointer, line("c"), 2).published]
    assert names == ["c", "b"]


def test_publishing_again_does_not_list_twice():
    pointer = Pointer(FIRST, (line("b"), line("a")))
    assert len(manifest.with_newest(pointer, line("b"), 5).published) == 2


def test_at_least_one_checkpoint_is_kept():
    assert len(manifest.with_newest(Pointer(FIRST), line("a"), 0).published) == 1


def test_a_file_that_a_kept_checkpoint_uses_is_no_garbage():
    assert manifest.garbage([made("b", "k1", "k2")], [made("a", "k0", "k1")]) == {"k0"}


def left_behind(writer: Writer, by: Writer, pointer: Pointer, token: str = "00000000") -> bool:
    key = f"p/data/{manifest.checkpoint_id(writer, 3, 'cafecafe')}/x"
    return manifest.is_left_behind(key, FOLDERS, pointer, by, token)


def test_what_an_older_attempt_began_may_be_deleted():
    assert left_behind(FIRST, SECOND, Pointer(SECOND))


def test_what_a_newer_attempt_began_is_not_touched():
    assert not left_behind(SECOND, FIRST, Pointer(FIRST))


def test_what_this_writer_began_is_not_touched():
    assert not left_behind(FIRST, FIRST, Pointer(FIRST), token="cafecafe")


def test_what_an_unknown_service_began_is_not_touched():
    assert not left_behind(Writer("stranger", 1, "x"), FIRST, Pointer(FIRST))


def test_what_a_superseded_service_began_may_be_deleted():
    new = Writer("new", 1, "x")
    assert left_behind(SECOND, new, manifest.claimed(Pointer(SECOND), new))


@pytest.mark.parametrize(
    "key", ["p/latest.json", "p/data/photo.jpg", "p/datax/00000000-00000001-000001-cafecafe/x"]
)
def test_what_has_not_our_names_is_not_touched(key):
    assert not manifest.is_left_behind(key, FOLDERS, Pointer(SECOND), SECOND, "00000000")


def test_a_pointer_can_be_read_again():
    pointer = Pointer(SECOND, (line("b"), line("a")), ("old",))
    assert manifest.decode_pointer(manifest.encode_pointer(pointer)) == pointer


def test_a_manifest_can_be_read_again():
    assert manifest.decode_manifest(manifest.encode_manifest(made("a", "k"))) == made("a", "k")


def test_a_later_version_is_refused_by_name():
    document = json.loads(manifest.encode_pointer(Pointer(FIRST)))
    document["version"] = 2
    with pytest.raises(DocumentError, match="version 2"):
        manifest.decode_pointer(json.dumps(document).encode())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"version": 1}', b"\xff"])
def test_no_content_breaks_the_readers(content):
    with pytest.raises(DocumentError):
        manifest.decode_manifest(content)
    with pytest.raises(DocumentError):
        manifest.decode_pointer(content)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a//b", "", "a/\0"])
def test_a_manifest_never_leads_out_of_the_directory(path):
    document = json.loads(manifest.encode_manifest(made("a", "k")))
    document["files"][0]["path"] = path
    with pytest.raises(DocumentError):
        manifest.decode_manifest(json.dumps(document).encode())


def test_a_manifest_whose_parts_do_not_fit_its_size_is_refused():
    document = json.loads(manifest.encode_manifest(made("a", "k")))
    document["files"][0]["size"] = 9
    with pytest.raises(DocumentError):
        manifest.decode_manifest(json.dumps(document).encode())


@pytest.mark.parametrize("size", [0, 1, 8 << 20, (8 << 20) + 1, 5 << 30, 5 << 40])
def test_every_file_fits_into_the_parts_that_s3_allows(size):
    part = manifest.part_size_for(size)
    assert manifest.part_count(size, part) <= 10_000
    assert part >= 5 << 20


def test_parts_cover_the_file():
    entry = FileEntry("f", "k", 20, 8, (SHA,) * 3)
    assert [entry.part_range(number) for number in range(3)] == [(0, 8), (8, 8), (16, 4)]
