"""The offers of each framework: one allocation cycle, a pure function of ``ClusterState``.

Called by ``master`` at every cycle and at the events after which Mesos allocates at once. The
rules are those of Mesos' hierarchical allocator, cut to one machine: an agent's whole remainder
goes to one framework and role a cycle, the one with the smallest dominant share first; filters,
suppression, quota limits, GPU_RESOURCES, offer constraints and the smallest useful amount are
kept. Unlike Mesos, agents are visited in the order of their registration, not at random.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from embedded_mesos.master.records import ClusterState, Framework, RegisteredAgent
from embedded_mesos.resources import Kind, Resources
from untrusted_input.linear_pattern import compiled

#: --min_allocatable_resources "cpus:0.01|mem:32", in thousandths.
_MINIMUM: tuple[dict[str, int], ...] = ({"cpus": 10}, {"mem": 32_000})


@dataclass(frozen=True)
class Grant:
    """These resources of this agent shall be offered to this framework for this role."""

    framework_id: str
    mesos_role: str
    agent_id: str
    resources: Resources


def allocate(state: ClusterState, now: float) -> list[Grant]:
    """Return the offers of one cycle. ``now`` is unix seconds; nothing is changed but filters."""
    grants: list[Grant] = []
    shares = _Shares(state)
    for agent in state.agents.values():
        if not agent.active:
            continue
        available = state.available(agent.agent_id)
        for framework, role in shares.order():
            if not available:
                break
            offered = _offerable(
                state, shares, framework, role, agent=agent, available=available, now=now
            )
            if offered:
                grants.append(
                    Grant(framework.framework_id, role, agent.agent_id, offered.allocated_to(role))
                )
                shares.add(framework, role, offered)
                available -= offered
    return grants


def _offerable(
    state: ClusterState,
    shares: _Shares,
    framework: Framework,
    role: str,
    *,
    agent: RegisteredAgent,
    available: Resources,
    now: float,
) -> Resources:
    nothing = Resources()
    if not framework.connected or role in framework.suppressed:
        return nothing
    if agent.total.thousandths("gpus") and not framework.capable("GPU_RESOURCES"):
        return nothing
    if not meets_constraints(framework.constraints, role, agent):
        return nothing
    offered = available.filter(_reservation_roles(role))
    offered = _within_quota(state.quotas.get(_top(role), {}), shares, role, offered)
    if not _is_allocatable(framework, role, offered):
        return nothing
    for refused in framework.filters:
        if (
            refused.agent_id == agent.agent_id
            and refused.mesos_role == role
            and refused.holds(now, state.cycles)
            and refused.resources.contains(offered)
        ):
            return nothing
    return offered


def _reservation_roles(role: str) -> list[str]:
    # Resources reserved for a role may go to its children too.
    parts = role.split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]


def _top(role: str) -> str:
    return role.partition("/")[0]


def _within_quota(
    limits: Mapping[str, int], shares: _Shares, role: str, offered: Resources
) -> Resources:
    if not limits:
        return offered
    consumed = shares.consumed(_top(role))
    kept: dict[Kind, Any] = {}
    left = {name: limit - consumed.thousandths(name) for name, limit in limits.items()}
    for kind, amount in offered:
        if kind.name in left and isinstance(amount, int) and not kind.reservations:
            kept[kind] = max(0, min(amount, left[kind.name]))
            left[kind.name] -= kept[kind]
        else:
            kept[kind] = amount
    return Resources(kept)


def _is_allocatable(framework: Framework, role: str, offered: Resources) -> bool:
    wanted = framework.info.get("offer_filters", {}).get(role, {}).get("min_allocatable_resources")
    minimum: Iterable[Mapping[str, int]] = _MINIMUM
    if wanted is not None:
        minimum = [
            {
                name: round(float(one["value"]) * 1000)
                for name, one in group.get("quantities", {}).items()
            }
            for group in wanted.get("quantities", [])
        ]
        if not minimum:
            return bool(offered)
    # Reserved resources count too: Mesos adds up quantities whatever their reservation.
    return any(
        all(offered.thousandths(name) >= amount for name, amount in group.items())
        for group in minimum
    )


class _Shares:
    """Dominant shares of roles and of frameworks inside a role, kept while a cycle goes on."""

    def __init__(self, state: ClusterState) -> None:
        self._frameworks = list(state.frameworks.values())
        self._total = sum((agent.total for agent in state.agents.values()), Resources())
        self._held: dict[tuple[str, str], Resources] = {}
        self._counts = dict(state.allocations)
        for framework in self._frameworks:
            for task in framework.tasks.values():
                if not task.terminal:
                    self._hold(framework.framework_id, task.resources)
        for agent in state.agents.values():
            for (framework_id, _), resources in agent.executors.items():
                self._hold(framework_id, resources)
        for offer in state.offers.values():
            self._hold(offer.framework_id, offer.resources)

    def _hold(self, framework_id: str, resources: Resources) -> None:
        for role in resources.roles():
            if role is not None:
                part = Resources({k: v for k, v in resources if k.allocated == role})
                key = (framework_id, role)
                self._held[key] = self._held.get(key, Resources()) + part

    def consumed(self, top_role: str) -> Resources:
        """Return what a top-level role and its children hold, offers included."""
        held = (held for (_, role), held in self._held.items() if _top(role) == top_role)
        return sum(held, Resources())

    def add(self, framework: Framework, role: str, resources: Resources) -> None:
        """Count a grant."""
        self._hold(framework.framework_id, resources.allocated_to(role))
        for key in ((role, ""), (role, framework.framework_id)):
            self._counts[key] = self._counts.get(key, 0) + 1

    def order(self) -> list[tuple[Framework, str]]:
        """Return (framework, role) pairs, the one with the smallest share first."""
        pairs = [(f, role) for f in self._frameworks for role in f.roles]
        by_role: dict[str, Resources] = {}
        for (_, role), resources in self._held.items():
            by_role[role] = by_role.get(role, Resources()) + resources
        return sorted(
            pairs,
            key=lambda pair: (
                self._share(by_role.get(pair[1], Resources())),
                self._counts.get((pair[1], ""), 0),
                pair[1],
                self._share(self._held.get((pair[0].framework_id, pair[1]), Resources())),
                self._counts.get((pair[1], pair[0].framework_id), 0),
            ),
        )

    def _share(self, held: Resources) -> float:
        shares = [
            held.thousandths(name) / self._total.thousandths(name)
            for name in ("cpus", "mem", "disk", "gpus")
            if self._total.thousandths(name)
        ]
        return max(shares, default=0.0)


# -- offer constraints (FrameworkInfo's companions since Mesos 1.11) ----------------------------


def constraints_error(constraints: Mapping[str, Any]) -> str | None:
    """Return why ``OfferConstraints`` are not valid, in Mesos' words, or None."""
    for role, one in constraints.get("role_constraints", {}).items():
        groups = one.get("groups", [])
        if not groups:
            return (
                "'OfferConstraints::role_constraints' has an empty "
                f"'RoleConstraints::groups' for role {role}"
            )
        for group in groups:
            if not group.get("attribute_constraints"):
                return (
                    "'OfferConstraints::role_constraints' has an empty "
                    f"'RoleConstraints::Group::attribute_constraints' for role {role}"
                )
            for constraint in group["attribute_constraints"]:
                error = _regex_error(constraint.get("predicate", {}))
                if error:
                    return error
    return None


def _regex_error(predicate: Mapping[str, Any]) -> str | None:
    for name in ("text_matches", "text_not_matches"):
        if name in predicate:
            try:
                compiled(predicate[name]["regex"])
            except (ValueError, KeyError, TypeError) as error:
                return f"Failed to construct regex from pattern: {error}"
    return None


def meets_constraints(constraints: Mapping[str, Any], role: str, agent: RegisteredAgent) -> bool:
    """Say whether ``agent`` may be offered to ``role``: any group of which all hold."""
    one = constraints.get("role_constraints", {}).get(role)
    if one is None:
        return True
    return any(
        all(_holds(constraint, agent) for constraint in group["attribute_constraints"])
        for group in one["groups"]
    )


def _holds(constraint: Mapping[str, Any], agent: RegisteredAgent) -> bool:
    values, is_text = _selected(constraint.get("selector", {}), agent)
    predicate = constraint.get("predicate", {})
    if "exists" in predicate:
        return bool(values)
    if "not_exists" in predicate:
        return not values
    if not is_text:
        # Mesos compares text only: a SCALAR or RANGES attribute passes every text predicate.
        return True
    if "text_equals" in predicate:
        return _text(predicate["text_equals"]) in values
    if "text_not_equals" in predicate:
        return _text(predicate["text_not_equals"]) not in values
    if "text_matches" in predicate:
        pattern = compiled(predicate["text_matches"]["regex"])
        return any(pattern.fullmatch(value) for value in values)
    if "text_not_matches" in predicate:
        pattern = compiled(predicate["text_not_matches"]["regex"])
        return not any(pattern.fullmatch(value) for value in values)
    return False


def _text(operand: object) -> str:
    return str(operand["value"]) if isinstance(operand, dict) else str(operand)


def _selected(selector: Mapping[str, Any], agent: RegisteredAgent) -> tuple[list[str], bool]:
    pseudo = selector.get("pseudoattribute_type")
    domain = agent.info.get("domain", {}).get("fault_domain", {})
    if pseudo == "HOSTNAME":
        return [agent.hostname], True
    if pseudo in ("REGION", "ZONE"):
        found = domain.get(pseudo.lower(), {}).get("name")
        return ([found] if found else []), True
    name = selector.get("attribute_name")
    matching = [one for one in agent.attributes if one["name"] == name]
    texts = [one["text"]["value"] for one in matching if one["type"] == "TEXT"]
    if matching and not texts:
        return [str(name)], False
    return texts, True
