"""Agents on one machine share its ports and must not offer them twice."""

from __future__ import annotations

import pytest

from dcos_tensorflow.local.background_process import BackgroundProcessError
from dcos_tensorflow.local.cluster import AgentConfig
from dcos_tensorflow.local.daemon import disjoint, spread


def test_agents_have_addresses_and_ports_of_their_own() -> None:
    agents = spread(3)
    assert [one.address for one in agents] == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    assert [one.ports for one in agents] == [(31000, 31999), (32000, 32999), (33000, 33999)]


def test_many_agents_share_the_ports_that_there_are() -> None:
    agents = spread(100)
    assert len({port for one in agents for port in one.ports}) == 200
    assert agents[-1].ports[1] <= 65535


def test_equal_default_ranges_are_made_disjoint() -> None:
    assert [one.ports[0] for one in disjoint([AgentConfig(), AgentConfig()])] == [31000, 32000]


def test_overlapping_ranges_that_were_chosen_are_refused() -> None:
    agents = [AgentConfig(ports=(31000, 32000)), AgentConfig(ports=(32000, 33000))]
    with pytest.raises(BackgroundProcessError, match="port 32000"):
        disjoint(agents)


@pytest.mark.parametrize("count", [0, 251])
def test_impossible_numbers_of_agents_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 250"):
        spread(count)
