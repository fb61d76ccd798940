"""``Expect``: what the scheduler does and shows, since the ``Send`` before it.

Launches and kills that no ``Expect`` names fail the run. Tasks go by name, agents are S0, S1, ...
"""

import functools
from collections.abc import Callable
from typing import Any

from dcos_tensorflow.api.views.configurations import target
from dcos_tensorflow.api.views.health import health
from dcos_tensorflow.api.views.job import why
from dcos_tensorflow.api.views.plans import plan_and_status
from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.actions import Decline, Reconcile, Revive, Suppress
from service_runner.service import Service, name_of
from service_runner.ticks import Tick, Unmet, listed, quoted


def _expect(text: str, check: Callable[[Service], str | None]) -> Tick:
    """Return a tick of a check that returns what is wrong, None or '' when nothing is."""

    def checked(service: Service) -> None:
        wrong = check(service)
        if wrong:
            raise Unmet(wrong)

    return Tick(f"Expect.{text}", False, checked)


class Expect:
    """What the scheduler does and shows."""

    @staticmethod
    def launched(*tasks: str) -> Tick:
        """Exactly these tasks were launched."""

        def check(service: Service) -> str | None:
            found = [launch.name for launch in service.launches()]
            service.expected |= {f"launched {name}" for name in found}
            wrong = sorted(found) != sorted(tasks)
            return f"launched {listed(found)}" + _waiting(service) if wrong else None

        return _expect(f"launched({quoted(tasks)})", check)

    @staticmethod
    def killed(*tasks: str) -> Tick:
        """Exactly these tasks were killed, whichever their attempts."""

        def check(service: Service) -> str | None:
            found = {name_of(task_id) for task_id in service.kills()}
            service.expected |= {f"killed {name}" for name in found}
            return f"killed {listed(found)}" if found != set(tasks) else None

        return _expect(f"killed({quoted(tasks)})", check)

    @staticmethod
    def declined(because: str = "") -> Tick:
        """All offers of the last ``Send`` were declined, for a reason with this text in it."""

        def check(service: Service) -> str | None:
            declines = [action for action in service.actions if isinstance(action, Decline)]
            declined = {offer for decline in declines for offer in decline.offer_ids}
            kept = set(service.sent) - declined
            if not service.sent or kept:
                return f"not declined: {listed(service.sent[offer] for offer in kept)}"
            verdicts = service.scheduler.state.desk.log.verdicts
            said = {v.explanation for v in verdicts if v.offer_id in service.sent}
            return f"the reason is: {listed(said)}" if because not in " ".join(said) else None

        return _expect(f"declined({because!r})" if because else "declined()", check)

    @staticmethod
    def plan(name: str, status: str) -> Tick:
        """A plan has this status; ``"none"`` says that there is no such plan."""

        def check(service: Service) -> str | None:
            found = service.plan(name)
            is_now = found.status if found is not None else "none"
            why = f" {'; '.join(found.errors)}" if found is not None else ""
            return f"{name} is {is_now}{why}" + _waiting(service) if is_now != status else None

        return _expect(f"plan({name!r}, {status!s})", check)

    @staticmethod
    def step(plan: str, task: str, status: str, because: str = "") -> Tick:
        """A task's step in a plan has this status, and this text in its message."""

        def check(service: Service) -> str | None:
            found = service.plan(plan)
            phases = found.phases if found is not None else ()
            steps = [step for phase in phases for step in phase.steps if step.task == task]
            if not steps:
                return f"{plan} has no step for {task}"
            step = steps[-1]
            wrong = step.status != status or because not in step.message
            return f"{task} is {step.status}: {step.message}" if wrong else None

        said = f", {because!r}" if because else ""
        return _expect(f"step({plan!r}, {task!r}, {status!s}{said})", check)

    @staticmethod
    def reconciled(*tasks: str) -> Tick:
        """These tasks were asked for by name; without names: all were, implicitly."""

        def check(service: Service) -> str | None:
            asked = [a.tasks for a in service.actions if isinstance(a, Reconcile)]
            if not tasks:
                return None if () in asked else "the scheduler did not ask for all tasks"
            found = {name_of(task_id) for pairs in asked for task_id, _ in pairs}
            return f"asked for {listed(found)}" if found != set(tasks) else None

        return _expect(f"reconciled({quoted(tasks)})", check)

    @staticmethod
    def suppressed() -> Tick:
        """No more offers are wanted."""
        return _expect("suppressed()", lambda service: _last_wish(service, suppress=True))

    @staticmethod
    def revived() -> Tick:
        """Offers are wanted again."""
        return _expect("revived()", lambda service: _last_wish(service, suppress=False))

    @staticmethod
    def variables(task: str, **wanted: str | None) -> Tick:
        """The task that was just launched has these variables; None for one that it has not."""

        def check(service: Service) -> str | None:
            launches = [launch for launch in service.launches() if launch.name == task]
            if not launches:
                return f"{task} was not launched"
            env = launches[-1].env
            found = {name: env.get(name) for name in wanted}
            return f"{task} has {found}" if found != wanted else None

        shown = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
        return _expect(f"variables({task!r}, {shown})", check)

    @staticmethod
    def context(task: str, text: str) -> Tick:
        """The task that was just launched gives its job this context."""

        def check(service: Service) -> str | None:
            found = [
                service.runner_spec(n).job.context for n in service.launches() if n.name == task
            ]
            return f"{task} has {found}" if found != [text] else None

        return _expect(f"context({task!r}, {text!r})", check)

    @staticmethod
    def secrets(task: str, **files: str) -> Tick:
        """The task that was just launched gets these files of secrets, and variables name them."""

        def check(service: Service) -> str | None:
            launches = [launch for launch in service.launches() if launch.name == task]
            if not launches:
                return f"{task} was not launched"
            exports, _, _ = launches[-1].command.partition("python=")
            found = {
                name: secret.source
                for name in files
                for secret in launches[-1].secrets
                if f'export {name}="${{MESOS_SANDBOX:-$PWD}}"/{secret.file};' in exports
            }
            return f"{task} has {found}" if found != files else None

        shown = ", ".join(f"{name}={source!r}" for name, source in files.items())
        return _expect(f"secrets({task!r}, {shown})", check)

    @staticmethod
    def fetches(task: str, *files: str) -> Tick:
        """The task that was just launched fetches these addresses, among others."""

        def check(service: Service) -> str | None:
            launches = [launch for launch in service.launches() if launch.name == task]
            found = {uri.value for launch in launches for uri in launch.uris}
            return f"{task} fetches {listed(found)}" if set(files) - found else None

        return _expect(f"fetches({task!r}, {quoted(files)})", check)

    @staticmethod
    def same_containers(*tasks: str) -> Tick:
        """These tasks have the containers that the scheduler has begun with."""
        return _expect(
            f"same_containers({quoted(tasks)})", lambda service: _containers(service, tasks, True)
        )

    @staticmethod
    def new_containers(*tasks: str) -> Tick:
        """These tasks have other containers than the scheduler has begun with."""
        return _expect(
            f"new_containers({quoted(tasks)})", lambda service: _containers(service, tasks, False)
        )

    @staticmethod
    def tasks(*names: str) -> Tick:
        """Exactly these tasks live on the cluster."""

        def check(service: Service) -> str | None:
            found = sorted(name_of(task_id) for task_id in service.cluster.alive())
            return f"there live {listed(found)}" if found != sorted(names) else None

        return _expect(f"tasks({quoted(names)})", check)

    @staticmethod
    def epoch(number: int) -> Tick:
        """The ClusterSpec has this epoch, and the newest launches were given it."""

        def check(service: Service) -> str | None:
            epoch = service.scheduler.state.epoch
            found = epoch.epoch if epoch is not None else 0
            given = {launch.env[contract.TF_EPOCH] for launch in service.launches()}
            wrong = found != number or given - {str(number)}
            return f"the epoch is {found}, launches have {listed(given)}" if wrong else None

        return _expect(f"epoch({number})", check)

    @staticmethod
    def refused_update(because: str, **in_force: Any) -> Tick:
        """Other options were refused, for a reason with this text in it.

        The plan, ``why``, the target configuration and the health say so; ``in_force`` are the
        options that differ, with ``__`` for their dots. Marathon leaves the scheduler alone.
        """
        wanted = {name.replace("__", "."): value for name, value in in_force.items()}

        def check(service: Service) -> str | None:
            state, options = service.scheduler.state, service.scheduler.options.of
            plan, status = plan_and_status(state, "deploy")
            told = str(why(state)["not_updated"])
            refused = target(state, options(state.spec), service.start.given).get("refused")
            number = int(health(state)[0])
            wrong = (
                (plan["status"], status) != ("ERROR", 417)
                or because not in "".join(plan["errors"])
                or because not in told
                or refused is None
                or because not in refused["why"]
                or refused["in_force"] != wanted
                or not 200 <= number < 400
            )
            found = f"the plan is {plan['status']} ({status}) with {plan['errors']}, why: {told}"
            return f"{found}, refused: {refused}, health: {number}" if wrong else None

        return _expect(f"refused_update({because!r}, {wanted})", check)

    @staticmethod
    def in_force(**options: Any) -> Tick:
        """These options are in force, with ``__`` for their dots."""
        wanted = {name.replace("__", "."): value for name, value in options.items()}

        def check(service: Service) -> str | None:
            state = service.scheduler.state
            shown = target(state, service.scheduler.options.of(state.spec), {})["options"]
            found = {
                name: functools.reduce(lambda part, key: part[key], name.split("."), shown)
                for name in wanted
            }
            return f"in force are {found}" if found != wanted else None

        return _expect(f"in_force({wanted})", check)

    @staticmethod
    def torn_down() -> Tick:
        """The framework was removed and nothing of the service is stored any more."""

        def check(service: Service) -> str | None:
            if not service.cluster.torn_down:
                return "the framework was not removed"
            left = sorted(service.scheduler.store)
            return f"still stored: {listed(left)}" if left else None

        return _expect("torn_down()", check)


def _last_wish(service: Service, *, suppress: bool) -> str | None:
    wishes = [action for action in service.actions if isinstance(action, Suppress | Revive)]
    if wishes and isinstance(wishes[-1], Suppress) is suppress:
        return None
    return f"the calls were: {listed(type(wish).__name__ for wish in wishes)}"


def _containers(service: Service, tasks: tuple[str, ...], same: bool) -> str | None:
    records = service.scheduler.state.tasks
    missing = [name for name in tasks if name not in records]
    wrong = [
        name
        for name in tasks
        if name in records and (records[name].task_id == service.before.get(name)) is not same
    ]
    if not missing and not wrong:
        return None
    kept = "were replaced" if same else "were kept"
    return f"there are no {listed(missing)}; {listed(wrong)} {kept}"


def _waiting(service: Service) -> str:
    """Return why tasks wait, for the reader of a failure."""
    said = [misfit.reason for misfit in service.scheduler.state.only_gang.placing.misfits]
    return f"; it waits: {'; '.join(said)}" if said else ""
