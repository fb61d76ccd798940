"""What documents, docstrings and comments name is there: modules, functions, files, other pages.

A name is looked for without importing anything: in the files' trees alone.
"""

import ast
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from data_files import PUBLISHED_OPTIONS

ROOT = Path(__file__).parents[2]
FRAMEWORK = ROOT / "framework"
PACKAGE = FRAMEWORK / "dcos_tensorflow"
#: The packages beside are called by their names as the rooms of this one are.
ROOMS = frozenset(
    path.parent.name for folder in (PACKAGE, FRAMEWORK) for path in folder.glob("*/__init__.py")
) - {PACKAGE.name}

#: Decisions and the changelog tell of their own time.
DOCUMENTS = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
SOURCES = sorted([*FRAMEWORK.rglob("*.py"), *ROOT.glob("tests/**/*.py")])

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
IN_DOCUMENT = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
IN_SOURCE = re.compile(r"``([^`\n]+)``|:(?:class|func|meth|mod):`~?([^`\n]+)`")
DOTTED = re.compile(r"(?:dcos_tensorflow\.)?([a-z_]+)((?:\.\w+)+)(?:\(.*\))?")
PAGE = re.compile(r"(?:docs|tests)/[\w./-]+\.(?:md|py)")
#: Ends of texts with a dot that are files' names.
FILES = (".json", ".proto", ".py", ".md")
#: Where a path begins that must be there; ``dist/`` and what else is built is not looked for.
FOLDERS = ("framework/", "tests/", "docs/", "benchmarks/")
#: A path below a room ends so; others that begin like a room are a user's: ``local/work``.
IN_ROOM = tuple(f"{room}/" for room in ROOMS), (".py", "/")


def _options(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the dotted names of a schema's options and of their groups."""
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}{name}"
        yield from _options(inner, f"{path}{name}.")


#: A group of options may be called as a room is.
OPTIONS = frozenset(
    _options(json.loads((ROOT / "config-schemas" / "options.schema.json").read_text()))
)


@functools.cache
def names_in(module: Path) -> dict[str, frozenset[str]]:
    """Return what a module defines or imports, each with what a class of that name has."""
    found: dict[str, frozenset[str]] = {}
    for node in _statements(ast.parse(module.read_text()).body):
        match node:
            case ast.ClassDef(name=name, body=body):
                found[name] = frozenset(_defined(body))
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found.update((alias.asname or alias.name, frozenset()) for alias in names)
            case _:
                found.update((name, frozenset()) for name in _defined([node]))
    return found


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield these statements, and those that only a type checker reads: what is looked up late."""
    for node in body:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=names):
                yield from names
            case _:
                yield node


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def is_there(place: Path, name: str) -> bool:
    """Say whether a dotted name below a folder is a folder, a module, or a name of one."""
    parts = name.split(".")
    while parts and (place / parts[0]).is_dir():
        place, parts = place / parts[0], parts[1:]
    if not parts:
        return True
    module = place / f"{parts[0]}.py"
    if module.is_file():
        parts = parts[1:]
    else:
        module = place / "__init__.py"
    if not parts or not module.is_file():
        return not parts
    of_class = names_in(module).get(parts[0])
    return of_class is not None and (len(parts) == 1 or parts[1] in of_class)


def missing_names(texts: Iterable[str], *beside: Path) -> list[str]:
    """Return the names among these texts that begin at a room and lead nowhere.

    A module names its neighbours in the folder ``beside`` it as well.
    """
    dotted = (match for text in texts if (match := DOTTED.fullmatch(text)) is not None)
    named = (match[1] + match[2] for match in dotted if match[1] in ROOMS)
    places = (PACKAGE, FRAMEWORK, *beside)
    return [
        name
        for name in named
        if not name.endswith(FILES)
        and name not in OPTIONS
        and not any(is_there(place, name) for place in places)
    ]


def is_path(text: str) -> bool:
    """Say whether a text of a document is a path that must be there."""
    begins, ends = IN_ROOM
    below = text.startswith(FOLDERS) or (text.startswith(begins) and text.endswith(ends))
    return below and not set(text) & set(" <*=")


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_a_document_names_what_is_there(page: Path) -> None:
    text = page.read_text()
    quoted = IN_DOCUMENT.findall(text)
    paths = [path for path in quoted if is_path(path)]
    assert missing_names(quoted) == []
    assert [p for p in paths if not ((ROOT / p).exists() or (PACKAGE / p).exists())] == []
    assert [p for p in LINK.findall(text) if not (page.parent / p).exists()] == []


def test_a_name_that_leads_nowhere_is_found() -> None:
    there = ["core.step", "core.step.step", "core.draft.GangDraft.block", "options.json", "no.room"]
    gone = ["core.service", "core.step.service", "core.draft.GangDraft.members"]
    assert missing_names([*there, *gone]) == gone


def test_docstrings_and_comments_name_what_is_there() -> None:
    missing = []
    for source in SOURCES:
        text = source.read_text()
        quoted = ("".join(found) for found in IN_SOURCE.findall(text))
        pages = (page for page in PAGE.findall(text) if not (ROOT / page).exists())
        where = source.relative_to(ROOT)
        names = missing_names(quoted, source.parent)
        missing += [f"{where}: {name}" for name in (*names, *pages)]
    assert missing == []


def test_the_first_screen_holds_what_takes_two_minutes_and_what_it_prints() -> None:
    readme = (ROOT / "README.md").read_text()
    section = readme.split("## Two minutes")[1].split("\n## ")[0]
    assert "make demo" in section
    assert "make test" not in section
    assert "The job digits has succeeded" in section


@functools.cache
def texts_in_code() -> str:
    """Return every text of the package's code, docstrings and parts of f-strings among them."""
    trees = (ast.parse(module.read_text()) for module in FRAMEWORK.rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree))
    return "\n".join(
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def test_a_message_that_is_explained_is_one_of_ours() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert len(messages) > 20
    parts = [part for message in messages for part in message.split("...") if part.strip(" ,")]
    assert [part for part in parts if part not in texts_in_code()] == []


def test_each_option_of_the_published_package_has_its_line() -> None:
    page = (ROOT / "docs" / "migration.md").read_text().split("## From TFJob")[0]
    names = {path.rpartition(".")[2] for path in json.loads(PUBLISHED_OPTIONS.read_text())}
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", page)] == []
