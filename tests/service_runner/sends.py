"""``Send``: what Mesos and operators do.

Tasks go by name, agents are S0, S1, ...; times are seconds.
"""

from collections.abc import Callable

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
        return _send("offers()", _offer)

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


def _offer(service: Service) -> None:
    cluster = service.cluster
    if cluster.suppressed:
        raise Unmet("no offers are made: the scheduler has asked for none")
    known = set(cluster.offers)
    cluster.make_offers()
    made = {i: offer.agent_id for i, offer in cluster.offers.items() if i not in known}
    if not made:
        held = listed(offer.agent_id for offer in cluster.offers.values())
        later = [a for a in cluster.agents.values() if a.filtered_until > cluster.now]
        declined = listed(f"{a.agent_id} ({a.filtered_until - cluster.now:g} s)" for a in later)
        raise Unmet(f"nothing can be offered: held {held}; declined for longer {declined}")
    service.sent = made
