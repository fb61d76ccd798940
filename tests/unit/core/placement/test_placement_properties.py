"""What holds for every placement, whatever is wanted and offered."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.constraints import field_value
from dcos_tensorflow.core.placement.place import place
from dcos_tensorflow.core.placement.request import Assignment, TaskRequest
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator as Op
from dcos_tensorflow.core.spec.service_spec import (
    Fitness,
    PlacementConstraint,
    PlacementSpec,
    TaskRole,
)

ROLES = (TaskRole.CHIEF, TaskRole.WORKER, TaskRole.PS)
MESOS_ROLES = ("*", "training")
FIELDS = ("hostname", "rack", "@zone")
RULES = tuple(
    PlacementConstraint(name, operator, value)
    for name in FIELDS
    for operator, value in (
        (Op.UNIQUE, ""),
        (Op.MAX_PER, "2"),
        (Op.CLUSTER, ""),
        (Op.CLUSTER, "r1"),
        (Op.GROUP_BY, ""),
        (Op.GROUP_BY, "2"),
        (Op.LIKE, "[rhz][12]"),
        (Op.UNLIKE, ".*2"),
        (Op.IS, "r1"),
        (Op.IS_NOT, "r1"),
    )
)

preferences = st.sampled_from(
    (
        *map(PlacementSpec, Fitness),
        PlacementSpec(Fitness.WEIGHTED, cpus=0, mem=-1, gpus=5),
        PlacementSpec(Fitness.WEIGHTED, cpus=-0.5, mem=0, gpus=-2),
    )
)

amounts = st.sampled_from((0.0, 0.1, 0.2, 0.5, 1.0, 1.3, 2.0, 4.0))
resources = st.builds(
    Resources,
    cpus=amounts,
    mem=amounts.map(lambda x: x * 1000),
    disk=st.sampled_from((0.0, 10.0)),
    gpus=st.sampled_from((0, 0, 0, 1, 2)),
)
#: Small and overlapping, so that tasks run out of ports and machines share them.
port_ranges = st.lists(st.tuples(st.integers(31000, 31012), st.integers(0, 6)), max_size=2).map(
    lambda pairs: PortRanges.of((first, first + more) for first, more in pairs)
)


@st.composite
def clusters(draw: st.DrawFn) -> list[Offer]:
    """Return offers of a few agents; some agents have several, and of two Mesos roles."""
    offers = []
    for number in range(draw(st.integers(0, 5))):
        loopback = draw(st.booleans())
        attributes = draw(st.sampled_from(({}, {"rack": "r1"}, {"rack": "r2"})))
        zone = draw(st.sampled_from((None, "z1", "z2")))
        for mesos_role in draw(st.sampled_from((MESOS_ROLES[:1], MESOS_ROLES))):
            split = draw(port_ranges)
            for part in range(draw(st.integers(1, 2))):
                offers.append(
                    Offer(
                        offer_id=f"o{number}-{mesos_role}-{part}",
                        agent_id=f"a{number}",
                        hostname=f"h{number}",
                        address=f"{'127' if loopback else '10'}.0.0.{number + 1}",
                        mesos_role=mesos_role,
                        resources=draw(resources),
                        ports=split if part == 0 else PortRanges(),
                        attributes=attributes,
                        zone=zone,
                    )
                )
    return offers


@st.composite
def wishes(draw: st.DrawFn) -> list[TaskRequest]:
    """Return requests; all of one role have the same rules, as in a service."""
    requests = []
    for role in ROLES:
        rules = tuple(draw(st.lists(st.sampled_from(RULES), max_size=2)))
        required = draw(st.sampled_from((None, None, 31004)))
        for index in range(draw(st.integers(0, 4))):
            requests.append(
                TaskRequest(
                    name=f"{role}-{index}",
                    role=role,
                    resources=draw(resources),
                    port_count=draw(st.integers(0, 2)),
                    preferred_port=draw(st.sampled_from((None, 31001))),
                    required_port=required,
                    constraints=rules,
                )
            )
    return requests


running_tasks = st.lists(
    st.builds(
        Assignment,
        task=st.just("running"),
        role=st.sampled_from(ROLES),
        agent_id=st.just("elsewhere"),
        address=st.just("10.0.0.99"),
        mesos_role=st.just("*"),
        offer_ids=st.just(()),
        ports=st.just(()),
        hostname=st.sampled_from(("h1", "h9")),
        attributes=st.sampled_from(({}, {"rack": "r1"}, {"rack": "r9"})),
        zone=st.sampled_from((None, "z1")),
    ),
    max_size=3,
)


def value_of(task: Assignment, name: str) -> str | None:
    return field_value(name, task.hostname, task.attributes, task.zone, task.region)


@given(wishes(), clusters(), running_tasks)
def test_every_task_is_placed_or_explained(
    requests: list[TaskRequest], offers: list[Offer], running: list[Assignment]
) -> None:
    found = place(requests, offers, running)
    told = [a.task for a in found.assignments] + [m.task for m in found.misfits]
    assert sorted(told) == sorted(r.name for r in requests)
    for misfit in found.misfits:
        assert len(misfit.reason) > len(misfit.task) + 2
        rows = {(o.agent_id, o.mesos_role) for o in offers}
        assert sum(misfit.counts.values()) == len(rows)


@given(wishes(), clusters(), running_tasks)
def test_an_offer_is_useless_when_none_of_the_tasks_fits_alone(
    requests: list[TaskRequest], offers: list[Offer], running: list[Assignment]
) -> None:
    useless = place(requests, offers, running).useless_offers
    for key in {(o.agent_id, o.mesos_role) for o in offers}:
        group = [o for o in offers if (o.agent_id, o.mesos_role) == key]
        fits = any(place([request], group, running).complete for request in requests)
        assert {o.offer_id in useless for o in group} == {not fits}
    assert all(useless.values())


@given(wishes(), clusters(), preferences)
def test_no_agent_is_over_committed(
    requests: list[TaskRequest], offers: list[Offer], preferred: PlacementSpec
) -> None:
    wanted = {r.name: r.resources for r in requests}
    by_offers: dict[tuple[str, ...], Resources] = {}
    for assignment in place(requests, offers, preferred=preferred).assignments:
        key = assignment.offer_ids
        by_offers[key] = by_offers.get(key, Resources()) + wanted[assignment.task]
    used = [offer_id for key in by_offers for offer_id in key]
    assert len(used) == len(set(used))
    for key, taken in by_offers.items():
        offered = sum((o.resources for o in offers if o.offer_id in key), Resources())
        assert taken.fits_in(offered)


@given(wishes(), clusters())
def test_offers_of_different_agents_or_mesos_roles_are_never_mixed(
    requests: list[TaskRequest], offers: list[Offer]
) -> None:
    known = {o.offer_id: o for o in offers}
    for assignment in place(requests, offers).assignments:
        sources = {(known[i].agent_id, known[i].mesos_role) for i in assignment.offer_ids}
        assert sources == {(assignment.agent_id, assignment.mesos_role)}


@given(wishes(), clusters())
def test_ports_are_offered_and_distinct_on_each_machine(
    requests: list[TaskRequest], offers: list[Offer]
) -> None:
    wanted = {r.name: r for r in requests}
    taken: set[tuple[str, int]] = set()
    for a in place(requests, offers).assignments:
        request = wanted[a.task]
        offered = sum((o.ports for o in offers if o.offer_id in a.offer_ids), PortRanges())
        machine = "loopback" if a.address.startswith("127.") else a.address
        required = request.required_port is not None
        assert len(a.ports) == max(request.port_count, int(required))
        assert not required or a.ports[0] == request.required_port
        for port in a.ports:
            assert port in offered
            assert (machine, port) not in taken
            taken.add((machine, port))


@given(wishes(), clusters(), running_tasks, preferences)
def test_constraints_hold(
    requests: list[TaskRequest],
    offers: list[Offer],
    running: list[Assignment],
    preferred: PlacementSpec,
) -> None:
    found = place(requests, offers, running, preferred=preferred)
    for role in ROLES:
        mine = [a for a in found.assignments if a.role is role]
        rules = next((r.constraints for r in requests if r.role is role), ())
        already = [task for task in running if task.role is role]
        for rule in rules:
            assert_holds(rule, mine, already)


def assert_holds(
    rule: PlacementConstraint, mine: Sequence[Assignment], already: Sequence[Assignment]
) -> None:
    """Check one rule on the tasks of one role, by counting once more."""
    values = [value_of(task, rule.field) for task in mine]
    counts = Counter(v for v in (value_of(t, rule.field) for t in (*mine, *already)) if v)
    before = Counter(v for v in (value_of(t, rule.field) for t in already) if v)
    if rule.operator in (Op.UNIQUE, Op.MAX_PER):
        most = 1 if rule.operator is Op.UNIQUE else int(rule.value)
        assert all(counts[str(v)] <= most for v in values)
    elif rule.operator is Op.CLUSTER:
        allowed = {rule.value} if rule.value else set(before) or set(values[:1])
        assert set(values) <= allowed
    elif rule.operator is Op.IS_NOT:
        assert rule.value not in values
    elif rule.operator is Op.IS:
        assert set(values) <= {rule.value}
    elif rule.operator is Op.LIKE:
        assert all(v and v[0] in "rhz" and v[1:] in ("1", "2") for v in values)
    elif rule.operator is Op.UNLIKE:
        assert not any(v and v.endswith("2") for v in values)
    if rule.operator not in (Op.UNLIKE, Op.IS_NOT):
        assert None not in values


@given(st.integers(1, 12), st.lists(st.sampled_from(("r1", "r2", "r3")), min_size=1, max_size=6))
def test_group_by_differs_by_one_at_most_where_there_is_room(count: int, racks: list[str]) -> None:
    rule = PlacementConstraint("rack", Op.GROUP_BY)
    requests = [
        TaskRequest(f"worker-{i}", TaskRole.WORKER, Resources(1, 1), 1, constraints=(rule,))
        for i in range(count)
    ]
    offers = [roomy(number, rack) for number, rack in enumerate(racks)]
    found = place(requests, offers)
    assert found.complete
    counts = Counter(str(a.attributes["rack"]) for a in found.assignments)
    numbers = [counts[rack] for rack in set(racks)]
    assert max(numbers) - min(numbers) <= 1


def roomy(number: int, rack: str) -> Offer:
    ports = PortRanges(((31000, 31100),))
    return Offer(
        f"o{number}",
        f"a{number}",
        f"h{number}",
        f"10.0.0.{number}",
        "*",
        Resources(100, 100),
        ports,
        {"rack": rack},
    )


@given(wishes(), clusters(), running_tasks, preferences)
def test_no_preference_costs_a_place(
    requests: list[TaskRequest],
    offers: list[Offer],
    running: list[Assignment],
    preferred: PlacementSpec,
) -> None:
    packed = place(requests, offers, running)
    assert place(requests, offers, running, preferred=preferred).complete or not packed.complete


@given(wishes(), clusters(), running_tasks, st.randoms(use_true_random=False), preferences)
def test_the_order_of_the_offers_does_not_matter(
    requests: list[TaskRequest],
    offers: list[Offer],
    running: list[Assignment],
    random: object,
    preferred: PlacementSpec,
) -> None:
    shuffled = list(offers)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one = place(requests, offers, running, preferred=preferred)
    other = place(requests, shuffled, running, preferred=preferred)
    assert one == other
    assert one.useless_offers == other.useless_offers


@given(wishes(), clusters(), preferences)
def test_tasks_without_gpus_never_strand_a_gpu(
    requests: list[TaskRequest], offers: list[Offer], preferred: PlacementSpec
) -> None:
    found = place([r for r in requests if r.resources.gpus == 0], offers, preferred=preferred)
    wanted = {r.name: r.resources for r in requests}
    for key in {a.offer_ids for a in found.assignments}:
        free = sum((o.resources for o in offers if o.offer_id in key), Resources())
        for assignment in found.assignments:
            if assignment.offer_ids == key:
                free -= wanted[assignment.task]
        assert free.cpus >= 0.1 * free.gpus - 0.0005
        assert free.mem >= 64 * free.gpus - 0.0005


@st.composite
def one_agent_each(draw: st.DrawFn) -> tuple[list[TaskRequest], list[Offer]]:
    """Return tasks and, for each, an empty agent that is just right for it; agents may differ."""
    requests, offers = [], []
    for number in range(draw(st.integers(1, 8))):
        need = draw(resources)
        name = f"{draw(st.sampled_from(ROLES))}-{number}"
        kind = TaskRole(name.rsplit("-", 1)[0])
        rack = draw(st.sampled_from(("r1", "r2")))
        rules = draw(
            st.sampled_from(
                (
                    (),
                    (PlacementConstraint("rack", Op.IS, rack),),
                    (PlacementConstraint("hostname", Op.UNIQUE),),
                )
            )
        )
        spare = draw(resources)
        offer = roomy(number, rack)
        gpus = need.gpus + spare.gpus if need.gpus else 0
        total = need + replace(spare, gpus=0)
        offers.append(replace(offer, resources=replace(total, gpus=gpus)))
        requests.append(TaskRequest(name, kind, need, 2, constraints=rules))
    return requests, offers


@given(one_agent_each())
def test_all_are_placed_where_each_task_can_have_an_agent_of_its_own(
    made: tuple[list[TaskRequest], list[Offer]],
) -> None:
    requests, offers = made
    found = place(requests, offers)
    assert found.complete, found.misfits


@pytest.mark.parametrize("count", [1, 50])
def test_a_larger_gang_of_equal_tasks_gets_an_empty_agent_each(count: int) -> None:
    requests = [
        TaskRequest(f"worker-{i}", TaskRole.WORKER, Resources(100, 100), 2) for i in range(count)
    ]
    assert place(requests, [roomy(i, "r1") for i in range(count)]).complete
