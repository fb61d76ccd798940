"""What a new machine runs first: it starts a Mesos agent that says which machine it is."""

import os
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from dcos_tensorflow.capacity.provider import Denied
from dcos_tensorflow.capacity.providers.agent_script import MOST_BYTES, user_data
from dcos_tensorflow.core.spec.capacity_spec import Ec2Spec
from servers.metadata_service import MetadataService

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

FACTS = {
    "instance-type": "g4dn.xlarge",
    "placement/availability-zone": "us-east-1b",
    "instance-life-cycle": "spot",
    "local-ipv4": "10.1.2.3",
    "tags/instance/dcos-tensorflow:purchase": "purchase-7",
    "tags/instance/dcos-tensorflow:price": "0.158",
}
#: Stands for the agent: notes how it is called.
AGENT = '#!/bin/sh\nprintf "%s\\n" "$@" > "{notes}"\n'


def started(
    folder: Path, script: str, facts: dict[str, str], **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a machine's script with what it finds there; the agent's flags are in ``flags``."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    path = folder / "user-data"
    path.write_text(script)
    with MetadataService(facts) as metadata:
        variables = {"METADATA": metadata.url, "WORK_DIR": str(folder / "work"), **environment}
        return subprocess.run(
            ["sh", str(path)],
            env={"PATH": f"{programs}:{os.environ['PATH']}", **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def install(folder: Path) -> str:
    """Return commands that install the stand-in."""
    made = AGENT.format(notes=folder / "flags")
    (folder / "agent").write_text(made)
    target = folder / "bin" / "mesos-agent"
    return f'cp "{folder / "agent"}" "{target}" && chmod +x "{target}"'


def flags(folder: Path) -> list[str]:
    return (folder / "flags").read_text().splitlines()


def script_of(master: str, install: str) -> str:
    return user_data(Ec2Spec("us-east-1", master=master, install=install))


def test_an_agent_says_which_machine_it_is(tmp_path: Path) -> None:
    ended = started(tmp_path, script_of("zk://zk:2181/mesos", install=install(tmp_path)), FACTS)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert flags(tmp_path) == [
        "--master=zk://zk:2181/mesos",
        f"--work_dir={tmp_path}/work",
        "--ip=10.1.2.3",
        "--hostname=10.1.2.3",
        "--attributes=instance_type:g4dn.xlarge;zone:us-east-1b;market:spot;price:0.158;"
        "purchase_id:purchase-7",
    ]
    assert (tmp_path / "work").is_dir()


def test_an_agent_that_is_there_is_not_installed(tmp_path: Path) -> None:
    started(tmp_path, script_of("master:5050", install=install(tmp_path)), FACTS)
    ended = started(tmp_path, script_of("master:5050", install="exit 3"), FACTS)
    assert ended.returncode == 0


def test_more_flags_come_along(tmp_path: Path) -> None:
    spec = Ec2Spec(
        "us-east-1",
        master="master:5050",
        install=install(tmp_path),
        agent_flags="--isolation=gpu/nvidia --containerizers=mesos",
    )
    started(tmp_path, user_data(spec), FACTS)
    assert flags(tmp_path)[5:] == ["--isolation=gpu/nvidia", "--containerizers=mesos"]


def test_words_of_the_shell_stay_what_they_are(tmp_path: Path) -> None:
    text = "echo \"it's $HOME\" > '" + str(tmp_path / "told") + "'; exit 5"
    assert started(tmp_path, script_of("master:5050", install=text), FACTS).returncode == 5
    assert (tmp_path / "told").read_text().startswith("it's ")


def test_a_machine_that_does_not_know_what_it_is_starts_no_agent(tmp_path: Path) -> None:
    facts = {name: value for name, value in FACTS.items() if "purchase" not in name}
    ended = started(tmp_path, script_of("master:5050", install=install(tmp_path)), facts)
    assert ended.returncode != 0
    assert "404" in ended.stderr
    assert not (tmp_path / "flags").exists()


def test_user_data_that_ec2_would_not_take_is_refused() -> None:
    with pytest.raises(Denied, match=f"EC2 takes {MOST_BYTES}"):
        script_of("master:5050", install="x" * MOST_BYTES)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing() -> None:
    script = files("dcos_tensorflow.capacity.providers").joinpath("start_agent.sh")
    found = subprocess.run(
        ["shellcheck", str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (found.returncode, found.stdout) == (0, "")
