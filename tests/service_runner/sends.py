"""``Send``: what Mesos and operators do.

Tasks go by name, agents are S0, S1, ...; times are seconds.
"""

from collections.abc import Callable

from dcos_tensorflow.api import verbs
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.task import TaskState
from service_runner.service import Service
from service_runner.ticks import Tick, Unmet, listed, live, quoted


def _send(text: str, act: Callable[[Service], None]) -> Tick:
    def sent(service: Service) -> None:
        act(service)
        service.settle()

    return Tick(f"Send.{text}", True, sent)


class Send:
    """What happens to the scheduler."""

    @staticmethod
    def register() -> Tick:
        """The master takes the framework's subscription."""

        def act(service: Service) -> None:
            if not service.scheduler.beginning.subscribe:
                raise Unmet("this scheduler has nothing to ask of Mesos, and does not subscribe")
            service.cluster.subscribe()

        return _send("register()", act)

    @staticmethod
    def offers() -> Tick:
        """The master offers all that it may offer: not what was declined for longer."""
        return _send("offers()", lambda service: _offer(service, None))

    @staticmethod
    def offer(agent: str) -> Tick:
        """The master offers one agent."""
        return _send(f"offer({agent!r})", lambda service: _offer(service, agent))

    @staticmethod
    def time(seconds: float) -> Tick:
        """Time passes, without offers."""
        return Tick(f"Send.time({seconds:g})", True, lambda service: service.settle(seconds))

    @staticmethod
    def running(*tasks: str) -> Tick:
        """Tasks reach RUNNING: those that are named, or all that were launched."""

        def act(service: Service) -> None:
            for task_id in [live(service, task) for task in tasks]:
                service.cluster.report(task_id, TaskState.RUNNING)
            if not tasks:
                service.cluster.run_everything()
            # The runner answers, is told to start, and says that it has.
            service.settle(2)

        return _send(f"running({quoted(tasks)})", act)

    @staticmethod
    def agent_back(agent: str) -> Tick:
        """An agent that was lost answers again, and tells of what it runs."""
        return _send(f"agent_back({agent!r})", lambda service: service.cluster.bring_back(agent))

    @staticmethod
    def stray(task: str, agent: str = "S0") -> Tick:
        """An agent tells of a task of the service that its scheduler knows nothing of."""

        def act(service: Service) -> None:
            task_id = f"{service.start.spec.name.replace('/', '__')}__{task}__no-such-attempt"
            service.cluster.outbox.append(events.TaskUpdate(task_id, TaskState.RUNNING, agent))

        return _send(f"stray({task!r})", act)

    @staticmethod
    def plan(verb: str, plan: str) -> Tick:
        """The operator steers a plan by the HTTP API: ``interrupt``, ``continue``, ``restart``."""

        def act(service: Service) -> None:
            _order(service, verbs.plan_verb(service.scheduler.state, plan, verb, None, None))

        return _send(f"plan({verb!r}, {plan!r})", act)


def _order(service: Service, reply: verbs.Reply) -> None:
    if reply.event is None:
        raise Unmet(f"the API answers {reply.status}: {reply.body}")
    service.scheduler.handle(reply.event)


def _offer(service: Service, agent: str | None) -> None:
    cluster = service.cluster
    if cluster.suppressed:
        raise Unmet("no offers are made: the scheduler has asked for none")
    everything, known = cluster.agents, set(cluster.offers)
    if agent is not None:
        cluster.agents = {agent: everything[agent]}
    cluster.make_offers()
    cluster.agents = everything
    made = {i: offer.agent_id for i, offer in cluster.offers.items() if i not in known}
    if not made:
        held = listed(offer.agent_id for offer in cluster.offers.values())
        later = [a for a in everything.values() if a.filtered_until > cluster.now]
        declined = listed(f"{a.agent_id} ({a.filtered_until - cluster.now:g} s)" for a in later)
        raise Unmet(f"nothing can be offered: held {held}; declined for longer {declined}")
    service.sent = made
