"""Trees are walked through and removed however deep they are, and whatever their names."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dcos_tensorflow
from dcos_tensorflow.deploy.embedded.cluster import _set_aside
from dcos_tensorflow.history import folder as history
from dcos_tensorflow.task.output.event_files import event_files_below
from dcos_tensorflow.task.output.left_files import SandboxBefore
from dcos_tensorflow.task.storage import snapshot
from untrusted_input import trees

DEPTH = 1500


@pytest.fixture(autouse=True)
def _nothing_deep_is_left(tmp_path: Path) -> Iterator[None]:
    """Leave pytest no tree that its own remover, which recurs, would end with an error at."""
    yield
    subprocess.run(["rm", "-rf", "--", *tmp_path.iterdir()], check=True)


def deep(top: Path, name: str = "d", depth: int = DEPTH, file: str = "file") -> Path:
    """Make a tree of one folder in another, with a file in the last."""
    top.mkdir(exist_ok=True)
    place = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=place)
        inside = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inside
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY, dir_fd=place))
    os.close(place)
    return top


class TestRemove:
    @pytest.mark.parametrize("name", ["d", "a-name-with-which-no-path-is-short-enough"])
    def test_whatever_the_depth_nothing_is_left(self, tmp_path: Path, name: str) -> None:
        top = deep(tmp_path / "top", name)
        (top / "link").symlink_to(tmp_path)
        trees.remove(top, strictly=True)
        assert list(tmp_path.iterdir()) == []

    def test_few_descriptors_do(self, tmp_path: Path) -> None:
        """In a process of its own: a limit holds for what else this one has open, too."""
        top = deep(tmp_path / "top")
        program = "import sys, untrusted_input.trees as t; t.remove(sys.argv[1], strictly=True)"
        command = ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh", sys.executable, "-c", program, top]
        subprocess.run(command, check=True)
        assert not top.exists()

    def test_a_wide_tree_with_names_like_ours_goes_too(self, tmp_path: Path) -> None:
        for path in ("top/.removed-0/a/b/c", "top/.removed-1/a/b", "top/x/.removed-0/y/z"):
            (tmp_path / path).mkdir(parents=True)
            (tmp_path / path / "file").touch()
        trees.remove(tmp_path / "top", strictly=True)
        assert not (tmp_path / "top").exists()

    def test_what_a_link_leads_to_stays(self, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "file").touch()
        (tmp_path / "top").mkdir()
        (tmp_path / "top" / "link").symlink_to(tmp_path / "other")
        (tmp_path / "itself").symlink_to(tmp_path / "other")
        trees.remove(tmp_path / "top")
        with pytest.raises(OSError, match="itself"):
            trees.remove(tmp_path / "itself", strictly=True)
        assert (tmp_path / "other" / "file").exists()

    def test_what_is_not_there_is_an_error_only_strictly(self, tmp_path: Path) -> None:
        trees.remove(tmp_path / "none")
        with pytest.raises(FileNotFoundError):
            trees.remove(tmp_path / "none", strictly=True)


class TestWalk:
    def test_every_file_is_found_and_no_link_is_followed(self, tmp_path: Path) -> None:
        deep(tmp_path / "top")
        (tmp_path / "top" / "back").symlink_to(tmp_path)
        found = list(trees.files_below(tmp_path / "top"))
        assert [os.path.basename(path) for path in found] == ["back", "file"]

    def test_folders_that_are_taken_out_are_not_gone_into(self, tmp_path: Path) -> None:
        (tmp_path / "a" / "inside").mkdir(parents=True)
        (tmp_path / "b").mkdir()
        seen = []
        for place, folders, _ in trees.walk(tmp_path):
            seen.append(os.path.relpath(place, tmp_path))
            folders[:] = [name for name in sorted(folders) if name != "a"]
        assert seen == [".", "b"]

    @pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
    def test_what_cannot_be_read_is_an_error_only_strictly(self, tmp_path: Path) -> None:
        (tmp_path / "closed").mkdir(mode=0)
        assert list(trees.files_below(tmp_path)) == []
        with pytest.raises(PermissionError):
            list(trees.walk(tmp_path, strictly=True))


class TestWhereTheyAre:
    """Each of these was ended by a tree of a thousand folders."""

    def test_what_a_job_has_left_is_told(self, tmp_path: Path) -> None:
        sandbox = SandboxBefore(str(tmp_path), ())
        deep(tmp_path / "out")
        assert sandbox.left().count == 1

    def test_event_files_are_found(self, tmp_path: Path) -> None:
        deep(tmp_path / "logs", file="events.out.tfevents.1")
        assert len(event_files_below([str(tmp_path)])) == 1

    def test_a_checkpoint_directory_is_looked_at(self, tmp_path: Path) -> None:
        assert len(snapshot.look(str(deep(tmp_path / "checkpoints"))).files) == 1

    def test_the_sandboxes_of_the_run_before_the_last_are_removed(self, tmp_path: Path) -> None:
        (tmp_path / "work").mkdir()
        deep(tmp_path / "previous")
        _set_aside(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["previous"]
        assert list((tmp_path / "previous").iterdir()) == []

    def test_a_former_run_is_removed(self, tmp_path: Path) -> None:
        deep(tmp_path / "1-0a1b2c3d")
        history.remove_oldest(tmp_path, 0)
        assert list(tmp_path.iterdir()) == []


def test_no_other_way_through_a_tree_is_taken() -> None:
    """Ruff refuses the functions (TID251); these are methods, of which it does not know whose."""
    found = set()
    for file in Path(dcos_tensorflow.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
            deep_glob = node.func.attr in ("glob", "iglob") and any("**" in str(t) for t in texts)
            if node.func.attr == "rglob" or deep_glob:
                found.add(file.name)
    # What is packed there are libraries, and no tree of a user.
    assert found == {"pack_libraries.py"}
