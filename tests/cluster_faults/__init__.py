"""Faults to order, for tests: of updates, tasks, agents, machines, the master, its connections.

A ``FaultyCluster`` is an ``EmbeddedCluster`` whose ``faults`` are to order. Each order is
deterministic: it says what happens to which messages or processes, never how likely. Orders may
come from any thread. Agents are named by their place in the cluster's configuration, tasks by their
Mesos task id. An order that cannot be carried out raises ``FaultError``. Of a cluster in another
process (``python -m cluster_faults``) they are ordered over HTTP (``door``).

What becomes of an agent (``agents``)::

    order                     agent        its tasks' processes     what schedulers see
    partition_agent           cut off      live on                  UNREACHABLE after agent_timeout
      heal_agent              back         -                        RUNNING, AGENT_REREGISTERED
    freeze_agent              stands still live on                  UNREACHABLE after agent_timeout
    freeze_agent(tasks=True)  stands still SIGSTOP, the whole tree  UNREACHABLE after agent_timeout
      thaw_agent              goes on      SIGCONT                  RUNNING, AGENT_REREGISTERED
    crash_agent               killed       live on (checkpoint)     UNREACHABLE after agent_timeout
                                           killed (no checkpoint)   TASK_LOST at once
      restart_agent           same id      taken up again           RUNNING, AGENT_REREGISTERED, or
                                                                    nothing when it was quick
    lose_machine              killed       killed                   UNREACHABLE after agent_timeout
      replace_machine         new id       none                     offers of a new agent
    start_machine             new          -                        offers of a new agent
    shut_down_agent           ends         killed                   TASK_LOST at once, FAILURE
      restart_agent           new id       none                     offers of a new agent

``agent_timeout`` is that of ``Timing``. As long as it is cut off, frozen or dead an agent's HTTP
server is, too: it keeps its callers waiting, or breaks their connections when its process is dead.
Tasks are on one machine and reach each other all the same, and the kernel closes what a killed
process had open: to let peers vanish in silence, give agents network namespaces and cut a link
first.

What an operator does (``operators``; also to be had with ``POST /api/v1`` on the master)::

    schedule_maintenance([agents], start_in_seconds, duration_seconds=None)
        offers rescinded and made anew with unavailability, INVERSE_OFFERS to who has tasks there
    cancel_maintenance([agents] or None)   RESCIND_INVERSE_OFFER, offers without unavailability
    start_maintenance([agents])            machine down: agents shut down, TASK_LOST, FAILURE
    stop_maintenance([agents])             machine up: new agents
    drain_agent(agent, max_grace_seconds=None, mark_gone=False)
        KILLED, REASON_AGENT_DRAINING (mark_gone: GONE_BY_OPERATOR), then no offers
    deactivate_agent, reactivate_agent     no offers, offers
    mark_agent_gone(agent)                 GONE_BY_OPERATOR, its processes are killed when it hears;
                                           ``restart_agent`` brings a new one

Processes: ``task_pids(task_id)``, ``signal_task(task_id, number, tree=False)``,
``kill_executor(task_id)`` (TASK_FAILED, REASON_EXECUTOR_TERMINATED); ``agent_of(task_id)``,
``agent_id(agent)`` to look.

The master (``masters``): ``lose_master(agents_return=True)``, ``return_agents``,
``stop_master`` and ``start_master(agents_return=True)``, ``refuse(seconds)`` (503),
``redirect(leader)`` (307), ``slow_answers(seconds)``. A new master knows what Mesos' registry
knows: agent ids, the maintenance schedule, who is drained, quotas; tasks only when their agents
are back.

Messages: ``drop_updates``, ``delay_updates``, ``duplicate_updates``, ``drop_accept_before``,
``drop_accept_after``, ``rescind_at_accept``, ``close_streams``, ``close_streams_mid_record``,
``half_open_streams``.
"""

from cluster_faults.agents import FaultError
from cluster_faults.faults import Faults, FaultyCluster

__all__ = ["FaultError", "Faults", "FaultyCluster"]
