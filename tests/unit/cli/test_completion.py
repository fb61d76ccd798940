"""Completion: the script of each shell, and what is proposed."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dcos_tensorflow.cli.main import COMPLETION_VARIABLE, SHELLS, run_command_line


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work directory with two services in it."""
    for service in ("mnist", "team__digits"):
        (tmp_path / "services" / service).mkdir(parents=True)
    for task in ("ps-0", "worker-0", "worker-1"):
        (tmp_path / "services" / "mnist" / "tasks" / task).mkdir(parents=True)
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    return tmp_path


def proposed(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Return what bash is answered for a line that ends where the cursor is."""
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    code = run_command_line([])
    said = capsys.readouterr().out.splitlines()
    found = [line.partition(",")[2] for line in said if line]
    assert code == 0
    return found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("dcos-tensorflow val", ["validate"]),
        ("dcos-tensorflow plan st", ["status"]),
        ("dcos-tensorflow plan status d", ["deploy", "decommission"]),
        ("dcos-tensorflow why ", ["mnist", "team__digits"]),
        ("dcos-tensorflow stop m", ["mnist"]),
        ("dcos-tensorflow uninstall t", ["team__digits"]),
        ("dcos-tensorflow pod list --name m", ["mnist"]),
        ("dcos-tensorflow logs --name mnist w", ["worker-0", "worker-1"]),
        ("dcos-tensorflow logs --name team__digits w", []),
        ("dcos-tensorflow logs w", []),
        ("dcos-tensorflow logs m", ["mnist"]),
        ("dcos-tensorflow logs mnist p", ["ps-0"]),
        ("dcos-tensorflow logs --fol", ["--follow"]),
        ("dcos-tensorflow endpoints t", ["tensorboard"]),
        ("dcos-tensorflow options m", ["mnist"]),
        ("dcos-tensorflow debug config ta", ["target", "target_id"]),
        ("dcos-tensorflow completion ", list(SHELLS)),
        ("dcos-tensorflow run --det", ["--detach"]),
        ("dcos-tensorflow ini", ["init"]),
        ("dcos-tensorflow run train.py --worke", ["--workers"]),
        ("dcos-tensorflow init train.py --tens", ["--tensorflow"]),
        ("dcos-tensorflow no-such-command x", []),
    ],
)
def test_what_is_proposed(
    home: Path,
    words: str,
    expected: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert proposed(words, capsys, monkeypatch) == expected


def test_a_machine_without_services_proposes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path / "nowhere"))
    assert proposed("dcos-tensorflow why ", capsys, monkeypatch) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{COMPLETION_VARIABLE}={shell}_complete" in script


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["completion", "tcsh"]) == 2
    assert "'tcsh' is not one of" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_itself_understands_its_script(shell: str, home: Path, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    command = tmp_path / "bin" / "dcos-tensorflow"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dcos_tensorflow "$@"\n')
    command.chmod(0o755)
    program = {
        "bash": (
            "source <(dcos-tensorflow completion bash); COMP_WORDS=(dcos-tensorflow why m);"
            ' COMP_CWORD=2; _dcos_tensorflow_completion dcos-tensorflow; echo "${COMPREPLY[@]}"'
        ),
        "zsh": ('compdef() { :; }; eval "$(dcos-tensorflow completion zsh)" && echo mnist'),
        "fish": ("dcos-tensorflow completion fish | source; complete -C 'dcos-tensorflow why m'"),
    }[shell]
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    root = Path(__file__).resolve().parents[3] / "framework"
    ended = subprocess.run(
        [shell, "-c", program],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout.split() == ["mnist"]
