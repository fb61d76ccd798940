"""The process behind ``daemon``: one cluster of one folder, until it is told to end.

Called by ``python -m embedded_mesos``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from embedded_mesos.background_process import stop_requested
from embedded_mesos.cluster import EmbeddedCluster
from embedded_mesos.daemon import agent_of, background_of, credential_of, page_of
from untrusted_input.shield import keep_memory_private


def serve(state_dir: Path, kind: Callable[..., EmbeddedCluster] = EmbeddedCluster) -> None:
    """Run the cluster of ``state_dir`` until SIGTERM or SIGINT, or until the folder is gone.

    What it is made of comes by standard input. Without that there is nothing to run: whoever
    started the process has gone away, or has found that no cluster is needed.
    """
    # It knows what its tasks are launched with, their secrets included.
    keep_memory_private()
    state_dir = Path(state_dir).resolve()
    background = background_of(state_dir)
    config = background.handed_over()
    if config is None:
        return
    stopping = stop_requested()
    agents = [agent_of(one) for one in config["agents"]]
    given = credential_of(state_dir)
    known = {given.principal: given.secret} if given.principal else None
    work = state_dir / "work"
    page = page_of(config["page"])
    with kind(agents, work, port=config["port"], credentials=known, page=page) as cluster:
        background.announce(master=cluster.master, agents=config["agents"])
        background.await_end(stopping)
    if not background.is_lost():
        background.forget()
