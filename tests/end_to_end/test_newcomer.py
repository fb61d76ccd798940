"""README, typed word by word by a user who has nothing: Debian, no root, an empty home.

Each section with commands is one test; what a section tells in words rather than in commands is in
its ``Play``. Commands that one machine cannot carry out are named there, with what they need.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from command_line import EXAMPLES, NEWEST, OLD, ROOT
from document_commands import blocks, commands
from newcomer import Newcomer, Terminal, why_not

README = ROOT / "README.md"
#: ``.`` says the same in every shell, and so everywhere below.
ACTIVATE = ". .venv/bin/activate"
#: Code of the newcomer's own: a real training, and one to be steered, which needs no TensorFlow.
TRAINING = (EXAMPLES / "keras" / "train.py").read_text()
ENDLESS = """
import time

step = 0
while True:
    step += 1
    print(f"step {step} loss {1 / step}", flush=True)
    time.sleep(1)
"""

slow = [pytest.mark.soak, pytest.mark.tensorflow, pytest.mark.timeout(5400)]


@dataclass(frozen=True)
class Play:
    """What the reader of a section does and sees beside typing its commands.

    A command is known by how it begins.
    """

    #: The newcomer's module.
    code: str = TRAINING
    #: What is typed before and afterwards, as the text says it in words.
    first: tuple[str, ...] = (ACTIVATE,)
    last: tuple[str, ...] = ()
    #: A pattern that a command's output has in it.
    prints: dict[str, str] = field(default_factory=dict)
    #: Commands that are left running until the section's end, and end there by themselves.
    follows: tuple[str, ...] = ()
    #: Commands that are not typed, and what they need.
    needs: dict[str, str] = field(default_factory=dict)


TWO_MINUTES = "Two minutes"
PLAYS = {
    "Your own job": Play(
        first=(),
        last=(
            # "validate takes a script, and --master, too, and shows what would run there."
            "dcos-tensorflow validate options.json --master zk://h1,h2/mesos"
            " --set service.tensorflow_version=2.21.0",
            "dcos-tensorflow validate train.py --workers 2 -- --epochs 3",
            # "init writes a first options.json for a script".
            "dcos-tensorflow init -o first.json",
            "dcos-tensorflow validate first.json",
        ),
        prints={
            "dcos-tensorflow run train.py": "The job train has succeeded",
            "dcos-tensorflow run options.json ": "The job mnist has succeeded",
            "dcos-tensorflow validate options.json ": "worker",
            "dcos-tensorflow validate train.py": "train --epochs 3 from",
            "dcos-tensorflow init": "dcos-tensorflow run first.json",
        },
        needs={"dcos-tensorflow run options.json --master": "a Mesos"},
    ),
    "Several terminals, one cluster": Play(
        # Its exit code is that of the job that ran in the background.
        last=("dcos-tensorflow status digits --follow",),
        prints={
            "dcos-tensorflow run examples/tf1_script": "has succeeded",
            "dcos-tensorflow local status": r"(?s)(agent .*){3}",
        },
    ),
    "On Mesos": Play(needs={"dcos-tensorflow scheduler": "a Mesos and a ZooKeeper"}),
    "On DC/OS": Play(
        last=("ls dist/package/stub-universe-tensorflow.json",),
        prints={"make package": "repository.example/1.0.0/stub-universe-tensorflow.json"},
        needs={"dcos ": "a DC/OS"},
    ),
    "Installing": Play(first=(), last=("~/.venvs/dcos-tensorflow/bin/dcos-tensorflow --help",)),
    "When something dies": Play(
        code=ENDLESS,
        first=(
            ACTIVATE,
            "cd ../mnist",
            "dcos-tensorflow run options.json --detach --set worker.count=2",
            "dcos-tensorflow status",
            "dcos-tensorflow cluster",
        ),
        last=("dcos-tensorflow local down",),
        prints={
            "dcos-tensorflow list": "mnist",
            "dcos-tensorflow why": "mnist is ",
            "dcos-tensorflow uninstall": "is uninstalled",
        },
        follows=("dcos-tensorflow logs --follow",),
    ),
}
#: Pages whose commands are typed one after the other, as they stand.
RECIPES = ("tutorial", "keras", "strategies", "gpus")

SECTIONS = blocks(README, "sh")


def test_every_section_of_readme_with_commands_is_played() -> None:
    assert {*SECTIONS} == {TWO_MINUTES, *PLAYS}
    for title, play in PLAYS.items():
        known = {*play.prints, *play.follows, *play.needs}
        typed = [*commands(SECTIONS[title]), *play.last]
        assert [one for one in known if not any(each.startswith(one) for each in typed)] == []


@pytest.fixture(scope="module")
def newcomer() -> Iterator[Newcomer]:
    """A user who has been through README's first section."""
    if reason := why_not():
        pytest.skip(reason)
    person = Newcomer()
    try:
        terminal = person.terminal()
        repository = str(person.bare_repository())
        clone, *others = commands(SECTIONS[TWO_MINUTES])
        terminal.types(clone.replace("<this repository>", repository))
        for version in (NEWEST, OLD):
            person.has_tensorflow(version)
        said = [terminal.types(command).out for command in others]
        assert "The job digits has succeeded" in said[-1]
        yield person
    finally:
        for command, seconds in person.typed:
            print(f"{seconds:6.1f} s  {command}")
        person.leave()


def write_own_job(person: Newcomer, code: str) -> None:
    """Make the folder that README's second section tells of."""
    text = blocks(README, "json")["Your own job"]
    service = json.loads(text)["service"]
    folder = person.home / service["name"]
    person.brings(folder / "options.json", text)
    person.brings(folder / f"{service['job_name']}.py", code)


def play(terminal: Terminal, other: Terminal, title: str) -> None:
    """Type the commands of a section in their order."""
    section = PLAYS[title]
    left = []
    for command in (*section.first, *commands(SECTIONS[title]), *section.last):
        if any(map(command.startswith, section.needs)):
            continue
        if any(map(command.startswith, section.follows)):
            left.append(other.leaves(command))
            continue
        ended = terminal.types(command)
        for begin, pattern in section.prints.items():
            if command.startswith(begin):
                assert re.search(pattern, ended.out), f"{command}\n{ended.out}"
    for one in left:
        other.waits_for(one)


@pytest.mark.parametrize("title", [pytest.param(title, marks=slow) for title in PLAYS])
def test_a_section_of_readme_does_what_it_says(newcomer: Newcomer, title: str) -> None:
    terminal, other = (newcomer.terminal(newcomer.clone) for _ in range(2))
    other.types(ACTIVATE)
    write_own_job(newcomer, PLAYS[title].code)
    play(terminal, other, title)


# That of a notebook, which has no options, is executed in ``test_notebook``.
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(file.parent.name, marks=slow)
        for file in sorted(EXAMPLES.glob("*/options.json"))
    ],
)
def test_an_example_runs_as_it_is(newcomer: Newcomer, example: str) -> None:
    terminal = newcomer.terminal(newcomer.clone)
    terminal.types(ACTIVATE)
    ended = terminal.types(f"dcos-tensorflow run examples/{example}/options.json")
    assert "has succeeded" in ended.out


@pytest.mark.parametrize("page", [pytest.param(page, marks=slow) for page in RECIPES])
def test_a_recipe_does_what_it_says(newcomer: Newcomer, page: str) -> None:
    terminal = newcomer.terminal(newcomer.clone)
    terminal.types(ACTIVATE)
    for block in blocks(ROOT / "docs" / f"{page}.md", "sh").values():
        for command in commands(block):
            terminal.types(command)
