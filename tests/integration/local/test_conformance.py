"""The recordings of a real Mesos, played against the embedded cluster.

Each test plays one: same calls, same answers, same events. What a ``note`` line says was done to
the real agents and masters is ordered from ``Faults`` here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dcos_tensorflow.local.cluster import AgentConfig, EmbeddedCluster
from dcos_tensorflow.local.timing import Timing
from mesos_recording import Player, read

MakeCluster = Callable[..., EmbeddedCluster]


@pytest.mark.parametrize(
    "name",
    [
        "subscribe_offers_decline",
        "kill",
        "two_agents_in_one_accept",
        "reconcile",
        "failover",
        "failover_timeout",
        "malformed",
        "health",
        "unacked_retry",
        "launch_finish_fail",
        "many_tasks",
        "message_shutdown",
        "operator_teardown_limits",
    ],
)
def test_recording_is_reproduced(name: str, make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    Player(read(name), lambda: cluster.master).play()
