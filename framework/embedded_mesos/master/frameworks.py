"""Frameworks come and go: a stream is attached, a stream ends, a framework is removed. Pure.

Called by ``scheduler_calls`` (SUBSCRIBE, TEARDOWN), by ``operator_calls`` (TEARDOWN), and by
``master`` when a connection has ended or a failover timeout is over.
"""

from __future__ import annotations

from embedded_mesos import messages
from embedded_mesos.master import inverse_offers, offers
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.records import Framework


def connect(desk: Desk, framework: Framework, stream_id: str, now: float) -> None:
    """Attach a stream: SUBSCRIBED, a heartbeat, offers."""
    if framework.stream_id is not None:
        error = {"type": "ERROR", "error": {"message": "Framework failed over"}}
        desk.send_event(framework, error)
        desk.close_stream(framework.stream_id)
    _drop_claims(desk, framework)
    framework.stream_id = stream_id
    framework.failover_deadline = None
    framework.recovered = False
    framework.reregistered_at = now
    framework.next_heartbeat = now + desk.timing.heartbeat
    subscribed = {
        "framework_id": {"value": framework.framework_id},
        "heartbeat_interval_seconds": float(desk.timing.heartbeat),
        "master_info": desk.master_info(),
    }
    desk.send_event(framework, {"type": "SUBSCRIBED", "subscribed": subscribed})
    desk.send_event(framework, {"type": "HEARTBEAT"})
    offers.allocate(desk, now)


def _drop_claims(desk: Desk, framework: Framework) -> None:
    # Offers of an old connection die without a RESCIND (Mesos: failoverFramework).
    offers.drop_offers_of(desk, framework)
    inverse_offers.drop(desk, framework_id=framework.framework_id, tell=False)
    framework.filters.clear()
    framework.inverse_filters.clear()


def refuse_stream(desk: Desk, stream_id: str, problem: str) -> None:
    """Send ERROR on a stream that belongs to no framework, and end it."""
    desk.send_to_stream(stream_id, {"type": "ERROR", "error": {"message": problem}})
    desk.close_stream(stream_id)


def stream_closed(desk: Desk, stream_id: str, now: float) -> None:
    """Note that a scheduler's connection has ended: the failover timeout begins."""
    for framework in list(desk.state.frameworks.values()):
        if framework.stream_id == stream_id:
            framework.stream_id = None
            _drop_claims(desk, framework)
            framework.failover_deadline = now + framework.failover_timeout
            if framework.failover_timeout <= 0:
                remove(desk, framework, now)


def remove(desk: Desk, framework: Framework, now: float) -> None:
    """End a framework: its tasks are killed without updates, its id is refused from now on."""
    state = desk.state
    agents = {task.agent_id for task in framework.tasks.values()}
    for agent in state.agents.values():
        held = [key for key in agent.executors if key[0] == framework.framework_id]
        for key in held:
            del agent.executors[key]
        if held or agent.agent_id in agents:
            desk.send_to_agent(agent, messages.ShutdownFramework(framework.framework_id))
    for task in [*framework.tasks.values(), *framework.unreachable_tasks.values()]:
        if not task.terminal:
            task.state = "TASK_KILLED"
        desk.complete_task(framework, task)
    framework.tasks.clear()
    framework.unreachable_tasks.clear()
    _drop_claims(desk, framework)
    if framework.stream_id is not None:
        desk.close_stream(framework.stream_id)
    framework.stream_id = None
    framework.failover_deadline = None
    framework.unregistered_at = now
    del state.frameworks[framework.framework_id]
    state.completed_frameworks[framework.framework_id] = framework
    while len(state.completed_frameworks) > desk.timing.max_completed_frameworks:
        del state.completed_frameworks[next(iter(state.completed_frameworks))]
