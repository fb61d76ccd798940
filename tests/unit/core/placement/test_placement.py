"""Where tasks go, one situation a test."""

import pytest

from dcos_tensorflow.core.model.offer import AttributeValue, Offer
from dcos_tensorflow.core.placement.place import place
from dcos_tensorflow.core.placement.request import Assignment, Placement, TaskRequest
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator as Op
from dcos_tensorflow.core.spec.service_spec import (
    Fitness,
    PlacementConstraint,
    PlacementSpec,
    TaskRole,
)

HOSTNAME_UNIQUE = PlacementConstraint("hostname", Op.UNIQUE)


def offer(
    agent: str,
    *,
    cpus: float = 4,
    mem: float = 8192,
    gpus: int = 0,
    disk: float = 10_000,
    ports: tuple[tuple[int, int], ...] = ((31000, 31099),),
    mesos_role: str = "*",
    number: int = 0,
    address: str = "",
    unavailable_from: float | None = None,
    zone: str | None = None,
    region: str | None = None,
    **attributes: AttributeValue,
) -> Offer:
    """Return an offer of an agent such as ``a7``; its host is ``h7`` at 10.0.0.7."""
    return Offer(
        offer_id=f"{agent}-{mesos_role}-{number}",
        agent_id=agent,
        hostname=f"h{agent[1:]}",
        address=address or f"10.0.0.{agent[1:]}",
        mesos_role=mesos_role,
        resources=Resources(cpus, mem, disk, gpus),
        ports=PortRanges(ports),
        attributes=attributes,
        zone=zone,
        region=region,
        unavailable_from=unavailable_from,
    )


def task(
    name: str = "worker-0",
    *,
    cpus: float = 1,
    mem: float = 1024,
    gpus: int = 0,
    disk: float = 0,
    ports: int = 2,
    preferred_port: int | None = None,
    required_port: int | None = None,
    constraints: tuple[PlacementConstraint, ...] = (),
    region: str = "",
) -> TaskRequest:
    return TaskRequest(
        name=name,
        role=TaskRole(name.rsplit("-", 1)[0]),
        resources=Resources(cpus, mem, disk, gpus),
        port_count=ports,
        preferred_port=preferred_port,
        required_port=required_port,
        constraints=constraints,
        region=region,
    )


def runs(name: str, hostname: str, **attributes: AttributeValue) -> Assignment:
    """Return a task that has a place already."""
    role = TaskRole(name.rsplit("-", 1)[0])
    return Assignment(name, role, "", hostname, "", "*", (), (), attributes)


def rule(text: str) -> PlacementConstraint:
    field, operator, *value = text.split(":")
    return PlacementConstraint(field, Op(operator), ":".join(value))


def workers(count: int, *rules: str, **wants: float) -> list[TaskRequest]:
    constraints = tuple(rule(text) for text in rules)
    return [
        task(f"worker-{index}", constraints=constraints, **wants)  # type: ignore[arg-type]
        for index in range(count)
    ]


def agents(placement: Placement) -> dict[str, str]:
    return {a.task: a.agent_id for a in placement.assignments}


def racks(placement: Placement) -> list[object]:
    return sorted(str(a.attributes["rack"]) for a in placement.assignments)


def only_reason(placement: Placement) -> str:
    (misfit,) = placement.misfits
    return misfit.reason


class TestFit:
    def test_nothing_wanted_is_complete(self) -> None:
        assert place([], [offer("a1")]).complete

    def test_an_exact_fit_is_a_fit_whatever_the_floats_say(self) -> None:
        tasks = workers(3, cpus=0.1, mem=100)
        assert place(tasks, [offer("a1", cpus=0.3, mem=300)]).complete

    @pytest.mark.parametrize("short", ["cpus", "mem", "disk"])
    def test_every_resource_counts(self, short: str) -> None:
        wants = {"cpus": 1.0, "mem": 10.0, "disk": 10.0, short: 100_000.0}
        assert not place(workers(1, **wants), [offer("a1")]).complete

    def test_assignments_come_in_the_order_of_the_requests(self) -> None:
        tasks = [task("worker-0", cpus=1), task("worker-1", cpus=3), task("ps-0", cpus=2)]
        found = place(tasks, [offer("a1", cpus=8)])
        assert [a.task for a in found.assignments] == ["worker-0", "worker-1", "ps-0"]

    def test_an_assignment_tells_where_its_agent_is(self) -> None:
        found = place(workers(1), [offer("a7", zone="z1", region="eu", rack="r1")])
        (assignment,) = found.assignments
        assert (assignment.hostname, assignment.address) == ("h7", "10.0.0.7")
        assert (assignment.attributes, assignment.zone) == ({"rack": "r1"}, "z1")
        assert (assignment.agent_id, assignment.region) == ("a7", "eu")


class TestMergedOffers:
    def test_offers_of_an_agent_are_added_up(self) -> None:
        offers = [offer("a1", cpus=1, number=0), offer("a1", cpus=1, number=1)]
        (assignment,) = place(workers(1, cpus=2), offers).assignments
        assert assignment.offer_ids == ("a1-*-0", "a1-*-1")

    def test_ports_of_merged_offers_are_united(self) -> None:
        offers = [
            offer("a1", ports=((31000, 31000),), number=0),
            offer("a1", ports=((31001, 31001),), number=1),
        ]
        (assignment,) = place(workers(1), offers).assignments
        assert sorted(assignment.ports) == [31000, 31001]

    def test_an_offer_given_twice_counts_once(self) -> None:
        assert not place(workers(2, cpus=4), [offer("a1"), offer("a1")]).complete


class TestBestFit:
    def test_prefers_the_agent_that_is_fuller_afterwards(self) -> None:
        found = place(workers(1), [offer("a1", cpus=8), offer("a2", cpus=2), offer("a3", cpus=4)])
        assert agents(found) == {"worker-0": "a2"}

    def test_takes_the_first_by_name_of_equal_agents(self) -> None:
        found = place(workers(1), [offer("a2"), offer("a1"), offer("a3")])
        assert agents(found) == {"worker-0": "a1"}

    def test_prefers_agents_without_a_maintenance_window(self) -> None:
        found = place(workers(1), [offer("a1", unavailable_from=1e9), offer("a2", cpus=64)])
        assert agents(found) == {"worker-0": "a2"}

    def test_uses_an_agent_with_a_maintenance_window_when_nothing_else_fits(self) -> None:
        found = place(workers(1, cpus=4), [offer("a1", unavailable_from=1e9), offer("a2", cpus=1)])
        assert agents(found) == {"worker-0": "a1"}


class TestGpus:
    def test_tasks_without_gpus_keep_off_gpu_agents(self) -> None:
        found = place(workers(2), [offer("a1", gpus=4), offer("a2", cpus=64, mem=100_000)])
        assert set(agents(found).values()) == {"a2"}

    def test_tasks_without_gpus_use_a_gpu_agent_when_nothing_else_fits(self) -> None:
        assert place(workers(1), [offer("a1", gpus=4)]).complete

    def test_tasks_without_gpus_leave_headroom_for_each_free_gpu(self) -> None:
        gpu_agent = offer("a1", cpus=4, gpus=4)
        assert place(workers(1, cpus=3.6), [gpu_agent]).complete
        found = place(workers(1, cpus=3.7), [gpu_agent])
        assert only_reason(found) == "worker-0: 1 offer the rest is headroom for free gpus"

    def test_headroom_is_kept_in_memory_too(self) -> None:
        assert not place(workers(1, mem=8000), [offer("a1", mem=8192, gpus=4)]).complete

    def test_tasks_without_gpus_prefer_the_agent_with_most_to_spare_per_gpu(self) -> None:
        found = place(workers(1), [offer("a1", cpus=8, gpus=4), offer("a2", cpus=8, gpus=1)])
        assert agents(found) == {"worker-0": "a2"}

    def test_once_its_gpus_are_taken_an_agent_is_like_any_other(self) -> None:
        tasks = [task("worker-0", cpus=3), task("gpu-worker-0", cpus=1, gpus=2)]
        assert place(tasks, [offer("a1", cpus=4, gpus=2)]).complete

    def test_gpu_tasks_go_first(self) -> None:
        tasks = [task("worker-0", cpus=2), task("gpu-worker-0", cpus=3, gpus=1)]
        found = place(tasks, [offer("a1", cpus=4, gpus=1), offer("a2", cpus=2)])
        assert agents(found) == {"worker-0": "a2", "gpu-worker-0": "a1"}

    def test_gpu_tasks_prefer_the_agent_whose_gpus_they_use_up(self) -> None:
        offers = [offer("a1", gpus=8), offer("a2", cpus=64, gpus=2), offer("a3", gpus=4)]
        assert agents(place([task("gpu-worker-0", gpus=2)], offers)) == {"gpu-worker-0": "a2"}

    def test_gpu_tasks_prefer_an_agent_whose_other_gpus_stay_usable(self) -> None:
        offers = [offer("a1", cpus=4, gpus=2), offer("a2", cpus=16, gpus=8)]
        found = place([task("gpu-worker-0", cpus=4, gpus=1)], offers)
        assert agents(found) == {"gpu-worker-0": "a2"}


class TestPreferences:
    def agent_of(
        self, wanted: TaskRequest, offers: list[Offer], fitness: str, **weights: float
    ) -> str:
        preferred = PlacementSpec(Fitness(fitness), **weights)
        (assignment,) = place([wanted], offers, preferred=preferred).assignments
        return assignment.agent_id

    def test_spread_takes_the_emptiest_agent(self) -> None:
        offers = [offer("a1", cpus=2), offer("a2", cpus=8), offer("a3", cpus=4)]
        assert self.agent_of(task(), offers, "spread") == "a2"

    def test_spread_puts_equal_tasks_on_agents_of_their_own(self) -> None:
        spread = PlacementSpec(Fitness.SPREAD)
        found = place(workers(3), [offer(f"a{i}") for i in range(3)], preferred=spread)
        assert set(agents(found).values()) == {"a0", "a1", "a2"}

    def test_spread_packs_where_a_task_would_have_no_place_else(self) -> None:
        spread = PlacementSpec(Fitness.SPREAD)
        tasks = [task(f"worker-{i}", cpus=cpus) for i, cpus in enumerate((2, 4, 3, 4))]
        assert place(tasks, [offer("a1", cpus=8), offer("a2", cpus=5)], preferred=spread).complete

    @pytest.mark.parametrize(
        ("fitness", "agent"), [("pack_gpu", "a2"), ("pack_cpu_mem", "a1"), ("spread", "a2")]
    )
    def test_tasks_without_gpus_use_gpu_agents_where_only_cpus_and_memory_count(
        self, fitness: str, agent: str
    ) -> None:
        offers = [offer("a1", cpus=2, gpus=1), offer("a2", cpus=8)]
        assert self.agent_of(task(), offers, fitness) == agent

    @pytest.mark.parametrize(
        ("fitness", "agent"), [("pack_gpu", "a1"), ("pack_cpu_mem", "a2"), ("spread", "a1")]
    )
    def test_gpus_are_used_up_where_they_count(self, fitness: str, agent: str) -> None:
        offers = [offer("a1", cpus=8, gpus=1), offer("a2", cpus=2, gpus=4)]
        assert self.agent_of(task("gpu-worker-0", gpus=1), offers, fitness) == agent

    @pytest.mark.parametrize("fitness", Fitness)
    def test_other_gpus_stay_usable_whatever_counts(self, fitness: str) -> None:
        offers = [offer("a1", cpus=4, gpus=2), offer("a2", cpus=16, gpus=8)]
        assert self.agent_of(task("gpu-worker-0", cpus=4, gpus=1), offers, fitness) == "a2"

    @pytest.mark.parametrize(
        ("weights", "agent"),
        [
            ({"cpus": 1, "mem": 0, "gpus": 0}, "a1"),
            ({"cpus": 0, "mem": 1, "gpus": 0}, "a2"),
            ({"cpus": -1, "mem": 0, "gpus": 0}, "a3"),
            ({"cpus": 1, "mem": 3, "gpus": 0}, "a2"),
            ({"cpus": 0, "mem": 0, "gpus": -1}, "a3"),
        ],
    )
    def test_weights_say_what_counts(self, weights: dict[str, float], agent: str) -> None:
        offers = [
            offer("a1", cpus=2, mem=8192),
            offer("a2", cpus=4, mem=2048),
            offer("a3", cpus=8, mem=8192, gpus=1),
        ]
        assert self.agent_of(task(), offers, "weighted", **weights) == agent

    @pytest.mark.parametrize("fitness", Fitness)
    def test_group_by_comes_before_what_is_preferred(self, fitness: str) -> None:
        spread_out = [runs("worker-1", "h9", rack="r0")]
        tasks = [task(constraints=(rule("rack:GROUP_BY"),))]
        offers = [
            *(offer(f"a{i}", cpus=cpus, rack="r0") for i, cpus in ((1, 1), (2, 64))),
            offer("a3", cpus=8, rack="r1"),
        ]
        preferred = PlacementSpec(Fitness(fitness))
        found = place(tasks, offers, spread_out, preferred=preferred)
        assert agents(found) == {"worker-0": "a3"}


class TestPorts:
    def test_run_out(self) -> None:
        found = place(workers(2), [offer("a1", ports=((31000, 31002),))])
        assert only_reason(found) == "worker-1: 1 offer fewer than 2 free ports"

    def test_begin_with_the_preferred_one(self) -> None:
        (assignment,) = place([task(preferred_port=31050)], [offer("a1")]).assignments
        assert assignment.ports[0] == 31050

    def test_are_others_when_the_preferred_one_is_not_offered(self) -> None:
        (assignment,) = place([task(preferred_port=2222)], [offer("a1")]).assignments
        assert 2222 not in assignment.ports
        assert len(set(assignment.ports)) == 2

    def test_are_others_when_the_preferred_one_is_taken(self) -> None:
        tasks = [task(f"worker-{i}", preferred_port=31050) for i in range(2)]
        first, second = place(tasks, [offer("a1")]).assignments
        assert first.ports[0] == 31050
        assert 31050 not in second.ports

    def test_leave_the_preferred_port_of_another_task_alone(self) -> None:
        wanted = ((31000, 31003),)
        tasks = [
            task("ps-0", preferred_port=31003, cpus=2),
            task("worker-0", preferred_port=31000, cpus=1),
        ]
        found = {a.task: a.ports for a in place(tasks, [offer("a1", ports=wanted)]).assignments}
        assert (found["ps-0"][0], found["worker-0"][0]) == (31003, 31000)

    @pytest.mark.parametrize("salt", ["a", "b", "c", "d", "e", "f"])
    def test_leave_it_alone_wherever_the_choice_begins(self, salt: str) -> None:
        tasks = [task("worker-0", cpus=2), task("ps-0", cpus=1, preferred_port=31003)]
        offers = [offer("a1", ports=((31000, 31003),))]
        found = {a.task: a.ports for a in place(tasks, offers, salt=salt).assignments}
        assert found["ps-0"][0] == 31003

    def test_a_required_port_decides_the_agent(self) -> None:
        offers = [offer("a1"), offer("a2", cpus=64, ports=((2222, 2222), (31000, 31000)))]
        (assignment,) = place([task(required_port=2222)], offers).assignments
        assert assignment.agent_id == "a2"
        assert assignment.ports == (2222, 31000)

    def test_a_required_port_that_is_taken_is_named(self) -> None:
        tasks = [task(f"worker-{i}", required_port=31001) for i in range(2)]
        assert only_reason(place(tasks, [offer("a1")])) == (
            "worker-1: 1 offer port 31001 is not free"
        )

    def test_may_be_the_same_on_different_machines(self) -> None:
        offers = [offer(f"a{i}", cpus=1, ports=((31000, 31001),)) for i in (1, 2)]
        assert place(workers(2), offers).complete

    def test_begin_elsewhere_for_another_service(self) -> None:
        wide = [offer("a1", ports=((1025, 32000),))]
        one = place(workers(1), wide, salt="mnist").assignments[0].ports
        other = place(workers(1), wide, salt="resnet").assignments[0].ports
        assert not set(one) & set(other)

    def test_a_task_may_want_none(self) -> None:
        (assignment,) = place([task(ports=0)], [offer("a1", ports=())]).assignments
        assert assignment.ports == ()


class TestConstraints:
    def offers(self, count: int = 6, of_racks: int = 3, **more: float) -> list[Offer]:
        return [
            offer(f"a{i}", rack=f"r{i % of_racks}", **more)  # type: ignore[arg-type]
            for i in range(count)
        ]

    def test_unique_counts_while_placing(self) -> None:
        found = place(workers(3, "rack:UNIQUE"), self.offers())
        assert racks(found) == ["r0", "r1", "r2"]

    def test_unique_refuses_one_more_than_there_are_values(self) -> None:
        found = place(workers(4, "rack:UNIQUE"), self.offers())
        assert only_reason(found) == "worker-3: 6 offers rejected by placement rule rack:UNIQUE"

    def test_group_by_evens_out_what_already_runs(self) -> None:
        running = [runs(f"worker-{i}", "h0", rack="r0") for i in range(2)]
        tasks = workers(4, "rack:GROUP_BY")[2:]
        assert racks(place(tasks, self.offers(), running)) == ["r1", "r2"]

    def test_cluster_chooses_a_value_that_holds_all(self) -> None:
        offers = [offer("a1", cpus=1, rack="r0"), *[offer(f"a{i}", rack="r1") for i in (2, 3)]]
        assert racks(place(workers(4, "rack:CLUSTER"), offers)) == ["r1"] * 4

    def test_cluster_tries_another_value_when_the_promising_one_fails(self) -> None:
        # r0 has room for two by cpus, but its agents offer ports for one.
        offers = [
            offer("a1", cpus=2, ports=((31000, 31001),), rack="r0"),
            offer("a2", cpus=3, rack="r1"),
        ]
        assert racks(place(workers(2, "rack:CLUSTER"), offers)) == ["r1"] * 2

    def test_other_roles_are_not_counted(self) -> None:
        tasks = [task("ps-0", constraints=(HOSTNAME_UNIQUE,)), task(constraints=(HOSTNAME_UNIQUE,))]
        assert place(tasks, [offer("a1")]).complete

    def test_running_tasks_of_other_roles_are_not_counted(self) -> None:
        running = [runs("ps-0", "h1")]
        assert place(workers(1, "hostname:UNIQUE"), [offer("a1")], running).complete

    def test_running_tasks_of_the_same_role_are_counted(self) -> None:
        running = [runs("worker-1", "h1")]
        assert not place(workers(1, "hostname:UNIQUE"), [offer("a1")], running).complete

    def test_a_region_is_kept_to(self) -> None:
        offers = [offer("a1", region="us"), offer("a2", region="eu", cpus=64), offer("a3")]
        assert agents(place([task(region="eu")], offers)) == {"worker-0": "a2"}
        assert only_reason(place([task(region="ap")], offers)) == (
            "worker-0: 3 offers not in region ap"
        )


class TestSearch:
    def test_the_largest_goes_first_when_constraints_first_fails(self) -> None:
        tasks = [
            task("worker-0", cpus=1, constraints=(rule("rack:LIKE:r.*"),)),
            task("ps-0", cpus=4),
        ]
        offers = [offer("a1", cpus=4, rack="r1"), offer("a2", cpus=4.5, rack="r2")]
        assert place(tasks, offers).complete

    def test_each_gets_an_agent_of_its_own_when_only_that_works(self) -> None:
        # Best fit sends the flexible task to the only agent of the picky one.
        tasks = [
            task("worker-0", cpus=2, mem=10, constraints=(rule("rack:LIKE:r[12]"),)),
            task("ps-0", cpus=1, mem=2000, constraints=(rule("rack:IS:r1"),)),
            task("chief-0", cpus=1, mem=10, constraints=(rule("rack:LIKE:r[23]"),)),
        ]
        offers = [
            offer("a1", cpus=2, mem=2000, rack="r1"),
            offer("a2", cpus=2, mem=2500, rack="r2"),
            offer("a3", cpus=4, mem=3000, rack="r3"),
        ]
        assert agents(place(tasks, offers)) == {"worker-0": "a2", "ps-0": "a1", "chief-0": "a3"}

    @pytest.mark.parametrize(
        ("agents_have", "tasks_want"),
        [
            pytest.param(
                [(3, 4, "r1"), (4, 3, "r3"), (1, 4, "r1")],
                [(2, 1, "r[13]"), (3, 2, ""), (1, 2, "r[23]")],
                id="the first order fails",
            ),
            pytest.param(
                [(4, 1, "r3"), (4, 3, "r2"), (3, 4, "r3")],
                [(1, 1, ""), (1, 3, ""), (1, 1, ""), (3, 2, "")],
                id="only failed tasks first works",
            ),
            pytest.param(
                [(2, 4, "r2"), (3, 2, "r1"), (3, 1, "r2"), (2, 3, "r3")],
                [(2, 3, ""), (1, 2, "r[12]"), (1, 2, ""), (2, 2, "r[13]")],
                id="only largest first works",
            ),
        ],
    )
    def test_another_order_finds_what_the_first_does_not(
        self,
        agents_have: list[tuple[int, int, str]],
        tasks_want: list[tuple[int, int, str]],
    ) -> None:
        offers = [
            offer(f"a{i}", cpus=cpus, mem=mem, rack=rack)
            for i, (cpus, mem, rack) in enumerate(agents_have)
        ]
        tasks = [
            task(
                f"worker-{i}",
                cpus=cpus,
                mem=mem,
                ports=1,
                constraints=(rule(f"rack:LIKE:{racks}"),) if racks else (),
            )
            for i, (cpus, mem, racks) in enumerate(tasks_want)
        ]
        assert place(tasks, offers).complete


class TestMisfits:
    def test_name_the_need_and_the_best_agent(self) -> None:
        offers = [offer("a6"), offer("a7", gpus=1)]
        found = place([task("gpu-worker-2", gpus=2)], offers)
        assert only_reason(found) == "gpu-worker-2: needs 2 gpus, best agent a7 offers 1"
        assert found.misfits[0].counts == {"too little gpus": 2}

    def test_tell_rules_beside_amounts(self) -> None:
        offers = [offer("a1", gpus=1, rack="r1"), *[offer(f"a{i}", gpus=8) for i in (2, 3)]]
        found = place([task("gpu-worker-0", gpus=2, constraints=(rule("rack:IS:r1"),))], offers)
        assert only_reason(found) == (
            "gpu-worker-0: needs 2 gpus, best agent a1 offers 1; "
            "2 offers rejected by placement rule rack:IS:r1"
        )

    def test_name_all_that_the_nearest_agent_lacks(self) -> None:
        found = place([task(cpus=8, mem=16384)], [offer("a1"), offer("a2", cpus=1)])
        assert only_reason(found) == (
            "worker-0: needs 8 cpus and 16384 MB mem, best agent a1 offers 4 and 8192"
        )

    def test_name_who_took_the_rest_of_the_best_agent(self) -> None:
        found = place([task("ps-0", cpus=3.5), task("worker-0", cpus=1)], [offer("a1")])
        assert only_reason(found) == "worker-0: needs 1 cpu, best agent a1 offers 0.5 beside ps-0"

    def test_say_that_there_are_no_offers(self) -> None:
        assert only_reason(place(workers(1), [])) == "worker-0: no offers"

    def test_name_why_an_agent_is_avoided(self) -> None:
        found = place(workers(1), [offer("a1"), offer("a2")], avoid={"a1": "3 tasks failed there"})
        assert agents(found) == {"worker-0": "a2"}
        found = place(workers(1), [offer("a1")], avoid={"a1": "3 tasks failed there"})
        assert only_reason(found) == "worker-0: 1 offer avoided: 3 tasks failed there"

    def test_show_what_of_an_incomplete_gang_would_go_where(self) -> None:
        found = place(workers(2, cpus=3), [offer("a1")])
        assert agents(found) == {"worker-0": "a1"}
        assert not found.complete


class TestUselessOffers:
    def test_are_those_that_hold_none_of_the_tasks(self) -> None:
        offers = [offer("a1", cpus=4), offer("a2", cpus=0.5), offer("a3", gpus=1)]
        found = place([task("worker-0", cpus=2), task("gpu-worker-0", gpus=4)], offers)
        assert found.useless_offers == {"a2-*-0": "too little cpus"}

    def test_the_reason_for_a_useless_one_is_the_nearest_miss(self) -> None:
        offers = [offer("a1", cpus=0.5, rack="r1"), offer("a2", rack="r2")]
        found = place(workers(1, "rack:IS:r1"), offers)
        assert found.useless_offers == {
            "a1-*-0": "too little cpus",
            "a2-*-0": "rejected by placement rule rack:IS:r1",
        }

    def test_all_offers_of_an_agent_are_judged_together(self) -> None:
        offers = [offer("a1", cpus=1, number=0), offer("a1", cpus=1, number=1)]
        assert place(workers(1, cpus=2), offers).useless_offers == {}
        assert set(place(workers(1, cpus=3), offers).useless_offers) == {"a1-*-0", "a1-*-1"}

    def test_avoided_agents_are_useless(self) -> None:
        found = place(workers(1), [offer("a1")], avoid={"a1": "is draining"})
        assert found.useless_offers == {"a1-*-0": "avoided: is draining"}

    def test_all_are_useless_when_nothing_is_wanted(self) -> None:
        assert place([], [offer("a1")]).useless_offers == {"a1-*-0": "nothing is wanted"}
