"""Folders that jobs have made are walked and removed however deep, and no link is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dcos_tensorflow import trees

DEPTH = 2000


def deep(top: Path, levels: int = DEPTH) -> Path:
    """Make a tree that no function which calls itself gets through; return its top."""
    top.mkdir()
    # Bottom up: no path is longer than two names.
    for _ in range(levels):
        (top.parent / "next").mkdir()
        top.rename(top.parent / "next" / "d")
        (top.parent / "next").rename(top)
    return top


def test_a_deep_tree_is_removed(tmp_path: Path) -> None:
    trees.remove(deep(tmp_path / "top"))
    assert list(tmp_path.iterdir()) == []


def test_a_deep_tree_is_walked_as_far_as_a_path_can_be_long(tmp_path: Path) -> None:
    assert len(list(trees.walk(deep(tmp_path / "top")))) > 1000
    trees.remove(tmp_path / "top")


def test_a_link_is_removed_and_what_it_leads_to_is_left(tmp_path: Path) -> None:
    outside, top = tmp_path / "outside", tmp_path / "top"
    outside.mkdir()
    (outside / "kept").touch()
    (top / "sub").mkdir(parents=True)
    (top / "sub" / "link").symlink_to(outside)
    assert [names for _, _, names in trees.walk(top)] == [[], ["link"]]
    trees.remove(top)
    assert (outside / "kept").exists()


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    outside, link = tmp_path / "outside", tmp_path / "link"
    outside.mkdir()
    (outside / "kept").touch()
    link.symlink_to(outside)
    with pytest.raises(OSError, match="link"):
        trees.remove(link)
    assert (outside / "kept").exists()


def test_names_that_are_no_text_are_removed_too(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (Path(os.fsdecode(os.fsencode(top) + b"/\xff"))).mkdir()
    trees.remove(top)
    assert not top.exists()


def test_what_is_not_there_is_told_unless_that_is_to_be_left(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        trees.remove(tmp_path / "nothing")
    trees.remove(tmp_path / "nothing", ignore_errors=True)


def test_a_folder_that_is_taken_out_is_not_entered(tmp_path: Path) -> None:
    for name in ("a/b", "c"):
        (tmp_path / name).mkdir(parents=True)
    entered = []
    for folder, folders, _ in trees.walk(tmp_path):
        entered.append(Path(folder).name)
        folders[:] = [name for name in folders if name != "a"]
    assert entered == [tmp_path.name, "c"]
