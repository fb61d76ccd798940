"""Ports that the clusters of one machine do not offer twice."""

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from embedded_mesos import own_ports
from embedded_mesos.configuration import FIRST_PORT, AgentConfig, alike
from embedded_mesos.own_ports import claim

#: No cluster of another test has these, nor one of another test process.
FIRST = 45000 + 3000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
TWO = alike(AgentConfig(), 2, FIRST)


@pytest.fixture
def claims():
    with ExitStack() as stack:
        yield stack


def ports(agents):
    return [agent.ports for agent in agents]


def test_a_cluster_has_the_ports_that_it_asks_for(claims):
    assert claim(TWO, claims) == TWO


def test_a_second_cluster_has_others_than_those_of_outgoing_connections(claims):
    claim(TWO, claims)
    (first, last), after = ports(claim(TWO, claims))
    assert first < FIRST_PORT
    assert after == (last + 1, last + 1000)


def test_ports_that_overlap_in_part_are_not_shared(claims):
    claim(TWO[1:], claims)
    assert ports(claim(TWO, claims)) != ports(TWO)


def test_a_machine_without_more_ports_shares_them(claims, monkeypatch):
    monkeypatch.setattr(own_ports, "_LOWEST", FIRST)
    monkeypatch.setattr(own_ports, "LAST_PORT", FIRST + 2000)
    claim(TWO, claims)
    assert claim(TWO, claims) == TWO


def test_ports_of_a_cluster_that_ends_are_free(claims):
    with ExitStack() as first:
        claim(TWO, first)
    assert claim(TWO, claims) == TWO


def test_ports_of_a_cluster_that_is_killed_are_free(claims):
    held = (
        "import contextlib, time; from embedded_mesos.configuration import *;"
        "from embedded_mesos.own_ports import claim; stack = contextlib.ExitStack();"
        f"claim(alike(AgentConfig(), 2, {FIRST}), stack); print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", held], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with ExitStack() as meanwhile:
            assert claim(TWO, meanwhile) != TWO
        process.kill()
    assert claim(TWO, claims) == TWO
