"""What each task is told about the cluster, checked against the golden files and rule by rule."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.rendering import (
    address_of,
    data_shard,
    illegal_mix,
    rendered_strategy,
    tf_config,
    wait_for,
)
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    Addressing,
    JobSpec,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
)

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tf_config"
CHIEF, WORKER, GPU_WORKER = TaskRole.CHIEF, TaskRole.WORKER, TaskRole.GPU_WORKER
PS, EVALUATOR, TENSORBOARD = TaskRole.PS, TaskRole.EVALUATOR, TaskRole.TENSORBOARD


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_tf_config", GOLDEN / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()


def service(
    strategy: Strategy = Strategy.AUTO,
    job: JobSpec | None = None,
    addressing: Addressing = Addressing.OFFER,
    name: str = "mnist",
    **counts: int,
) -> ServiceSpec:
    roles = tuple(
        RoleSpec(TaskRole(role.replace("_", "-")), count, Resources(cpus=1), port=2222)
        for role, count in counts.items()
    )
    return ServiceSpec(
        name=name, roles=roles, strategy=strategy, job=job or JobSpec(), addressing=addressing
    )


def cluster(spec: ServiceSpec) -> ClusterSpec:
    return ClusterSpec(epoch=4, addresses={task: f"{task}:1" for task in spec.task_names()})


def told(spec: ServiceSpec, task: str) -> dict[str, Any]:
    config = tf_config(spec, cluster(spec), task)
    assert config is not None
    return config


def all_of(strategy: Strategy) -> dict[str, Any]:
    return json.loads((GOLDEN / f"{strategy}.json").read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("strategy", list(Strategy))
def test_the_golden_files_are_what_the_code_renders(strategy: Strategy) -> None:
    assert GENERATOR.golden(strategy) == GENERATOR.path_of(strategy).read_text()


def test_the_generator_says_which_file_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(GENERATOR, "HERE", tmp_path)
    assert GENERATOR.main([]) == 0
    assert GENERATOR.main(["--check"]) == 0
    (tmp_path / "multi_worker.json").write_text("{}")
    assert GENERATOR.main(["--check"]) == 1
    assert "multi_worker.json differs" in capsys.readouterr().out


def test_every_legal_mix_is_in_the_golden_file_of_auto() -> None:
    legal = sum(1 for mix in GENERATOR.mixes() if mix[CHIEF] + mix[WORKER] + mix[GPU_WORKER] > 0)
    assert len(all_of(Strategy.AUTO)) == legal


@pytest.mark.parametrize("strategy", list(Strategy))
class TestInEveryGoldenConfig:
    """Rules that hold for each mix and task, whatever the strategy."""

    def configs(self, strategy: Strategy) -> list[tuple[str, str, dict[str, Any]]]:
        return [
            (mix, task, told["distribute"]["tf_config"])
            for mix, entry in all_of(strategy).items()
            for task, told in entry["tasks"].items()
            if told["distribute"]["tf_config"] is not None
        ]

    def test_only_chief_worker_and_ps_are_listed(self, strategy: Strategy) -> None:
        for mix, task, config in self.configs(strategy):
            assert set(config["cluster"]) <= {"chief", "worker", "ps"}, (mix, task)

    def test_no_job_is_empty(self, strategy: Strategy) -> None:
        for mix, task, config in self.configs(strategy):
            assert all(config["cluster"].values()), (mix, task)

    def test_every_training_task_finds_its_own_address_at_its_index(
        self, strategy: Strategy
    ) -> None:
        for mix, task, config in self.configs(strategy):
            if task.startswith("evaluator"):
                continue
            role, index = task.rsplit("-", 1)
            place = config["task"]
            number = ["ps", "chief", "worker", "gpu-worker"].index(role)
            expected = f"10.0.{number}.{int(index) + 1}:"
            found = config["cluster"][place["type"]][place["index"]]
            assert found.startswith(expected), (mix, task)

    def test_the_evaluator_sees_the_cluster_and_is_not_in_it(self, strategy: Strategy) -> None:
        for mix, task, config in self.configs(strategy):
            assert "10.0.4." not in json.dumps(config["cluster"]), (mix, task)
            if task == "evaluator-0":
                assert config["task"] == {"type": "evaluator", "index": 0}, mix
                assert config["cluster"], mix

    def test_sidecars_have_no_config_and_are_listed_nowhere(self, strategy: Strategy) -> None:
        for mix, entry in all_of(strategy).items():
            assert entry["tasks"]["tensorboard-0"]["distribute"]["tf_config"] is None, mix
            assert "10.0.5." not in json.dumps(entry), mix

    def test_a_server_knows_ps_and_worker_only(self, strategy: Strategy) -> None:
        for mix, entry in all_of(strategy).items():
            for task, told in entry["tasks"].items():
                server = told["server"]
                if task.startswith(("evaluator", "tensorboard")):
                    assert server is None, (mix, task)
                else:
                    assert set(server["cluster"]) <= {"ps", "worker"}, (mix, task)

    def test_exactly_one_server_is_index_0_of_worker_and_it_decides(
        self, strategy: Strategy
    ) -> None:
        if strategy is Strategy.INDEPENDENT:
            return  # Each task is a cluster of its own.
        for mix, entry in all_of(strategy).items():
            first = [
                task
                for task, told in entry["tasks"].items()
                if told["server"]
                and (told["server"]["job_name"], told["server"]["task_index"]) == ("worker", 0)
            ]
            assert first == [entry["decider"]], mix


class TestAutoStrategy:
    @pytest.mark.parametrize(
        ("counts", "expected"),
        [
            ({"worker": 1}, Strategy.INDEPENDENT),
            ({"chief": 1, "evaluator": 1}, Strategy.INDEPENDENT),
            ({"ps": 1, "chief": 1, "gpu_worker": 2}, Strategy.PARAMETER_SERVER),
            # The published package has no chief, and ParameterServerStrategy demands a worker.
            ({"ps": 1, "worker": 2}, Strategy.BETWEEN_GRAPH),
            ({"ps": 1, "chief": 1}, Strategy.BETWEEN_GRAPH),
            ({"worker": 1, "gpu_worker": 1}, Strategy.MULTI_WORKER),
        ],
    )
    def test_goes_by_the_mix_of_roles(self, counts: dict[str, int], expected: Strategy) -> None:
        assert rendered_strategy(service(**counts)) is expected  # type: ignore[arg-type]

    def test_main_with_a_server_is_between_graph(self) -> None:
        job = JobSpec(contract=contract.CONTRACT_FUNCTION)
        spec = service(job=job, ps=1, chief=1, worker=1)
        assert rendered_strategy(spec) is Strategy.BETWEEN_GRAPH

    def test_a_tf1_script_is_between_graph(self) -> None:
        spec = service(job=JobSpec(tf1_compat=True), worker=2)
        assert rendered_strategy(spec) is Strategy.BETWEEN_GRAPH

    def test_a_named_strategy_is_kept(self) -> None:
        spec = service(strategy=Strategy.INDEPENDENT, worker=3)
        assert rendered_strategy(spec) is Strategy.INDEPENDENT


class TestIllegalMixes:
    @pytest.mark.parametrize(
        ("spec", "word"),
        [
            (service(ps=1), "nothing trains"),
            (service(chief=2, worker=1), "2 chiefs"),
            (service(worker=1, evaluator=2), "2 evaluators"),
            (service(Strategy.PARAMETER_SERVER, ps=1, worker=2), "needs a chief"),
            (service(Strategy.PARAMETER_SERVER, chief=1, worker=2), "parameter_server"),
            (service(Strategy.MULTI_WORKER, ps=1, worker=2), "no parameter servers"),
            (service(Strategy.INDEPENDENT, ps=2, worker=2), "2 are wanted"),
        ],
    )
    def test_is_refused_with_a_reason(self, spec: ServiceSpec, word: str) -> None:
        assert word in (illegal_mix(spec) or "")

    @pytest.mark.parametrize("strategy", [Strategy.AUTO, Strategy.BETWEEN_GRAPH])
    def test_ps_and_workers_without_chief_are_fine(self, strategy: Strategy) -> None:
        assert illegal_mix(service(strategy, ps=1, worker=2)) is None


class TestAddress:
    def test_is_the_offers_ip_and_port(self) -> None:
        spec = service(worker=1)
        assert address_of(spec, spec.roles[0], 0, "10.0.0.7", 31005) == "10.0.0.7:31005"

    def test_brackets_ipv6(self) -> None:
        spec = service(worker=1)
        assert address_of(spec, spec.roles[0], 0, "fd00::7", 31005) == "[fd00::7]:31005"

    def test_by_dns_is_the_tasks_name_with_the_configured_port(self) -> None:
        spec = service(addressing=Addressing.DNS, name="/group/mnist", gpu_worker=1)
        assert address_of(spec, spec.roles[0], 0, "10.0.0.7", 31005) == (
            "gpu-worker-0.groupmnist.autoip.dcos.thisdcos.directory:2222"
        )

    def test_by_dns_without_a_port_is_refused(self) -> None:
        spec = service(addressing=Addressing.DNS)
        with pytest.raises(ValueError, match="needs a port for worker"):
            address_of(spec, RoleSpec(WORKER, 1, Resources()), 0, "10.0.0.7", 31005)


class TestTfConfig:
    def test_sorts_indices_as_numbers(self) -> None:
        config = told(service(worker=11), "worker-10")
        assert config["task"]["index"] == 10
        assert config["cluster"]["worker"][10] == "worker-10:1"

    def test_has_no_ps_under_multi_worker(self) -> None:
        config = told(service(Strategy.MULTI_WORKER, ps=1, chief=1, worker=1), "worker-0")
        assert set(config["cluster"]) == {"chief", "worker"}

    @pytest.mark.parametrize("strategy", list(Strategy))
    def test_is_absent_for_a_single_task_job(self, strategy: Strategy) -> None:
        spec = service(strategy, worker=1, tensorboard=1)
        assert tf_config(spec, cluster(spec), "worker-0") is None

    def test_refuses_a_member_without_an_address(self) -> None:
        spec = service(worker=2)
        with pytest.raises(ValueError, match=r"worker-1 has no address in version 1"):
            tf_config(spec, ClusterSpec(1, {"worker-0": "a:1"}), "worker-1")


class TestWaitFor:
    @pytest.mark.parametrize(
        ("strategy", "kind", "task", "expected"),
        [
            # TensorFlow waits by itself.
            (Strategy.PARAMETER_SERVER, contract.CONTRACT_SCRIPT, "chief-0", ()),
            (Strategy.PARAMETER_SERVER, contract.CONTRACT_SCRIPT, "evaluator-0", ()),
            # Sessions: ps, then chief, then workers, also for main(server, log_dir, context).
            (Strategy.PARAMETER_SERVER, contract.CONTRACT_FUNCTION, "worker-0", ("ps", "chief")),
            (Strategy.BETWEEN_GRAPH, contract.CONTRACT_SCRIPT, "ps-0", ()),
            (Strategy.BETWEEN_GRAPH, contract.CONTRACT_SCRIPT, "chief-0", ("ps",)),
            (Strategy.BETWEEN_GRAPH, contract.CONTRACT_SCRIPT, "worker-1", ("ps", "chief")),
            (Strategy.BETWEEN_GRAPH, contract.CONTRACT_SCRIPT, "evaluator-0", ("chief",)),
            (Strategy.INDEPENDENT, contract.CONTRACT_FUNCTION, "worker-1", ()),
        ],
    )
    def test_is_for_servers_that_are_sure_to_be_opened(
        self, strategy: Strategy, kind: str, task: str, expected: tuple[str, ...]
    ) -> None:
        spec = service(strategy, ps=1, chief=1, worker=2, evaluator=1)
        table = cluster(spec)
        waits = [place for members in wait_for(spec, table, task, kind) for place in members]
        assert waits == [table.places[f"{role}-0"] for role in expected]

    @pytest.mark.parametrize("strategy", list(Strategy))
    def test_a_task_that_others_wait_for_starts_earlier(self, strategy: Strategy) -> None:
        order = ["ps", "chief", "worker", "gpu-worker", "evaluator", "tensorboard"]
        for mix, entry in all_of(strategy).items():
            for task, told in entry["tasks"].items():
                role, index = task.rsplit("-", 1)
                mine = (order.index(role), int(index))
                for rendering in (told["distribute"], told["server"] or {"wait_for": []}):
                    for address in rendering["wait_for"]:
                        _, _, number, host = address.split(":")[0].split(".")
                        assert (int(number), int(host) - 1) < mine, (mix, task, address)


class TestDecider:
    def test_is_no_task_when_nothing_trains(self) -> None:
        assert service(ps=1).decider == ""


class TestDataShard:
    def test_divides_the_data_among_the_members_that_there_are(self) -> None:
        fewer = ClusterSpec(epoch=5, addresses={"worker-0": "a:1", "worker-2": "c:1"})
        assert data_shard(fewer, "worker-2") == (1, 2)
