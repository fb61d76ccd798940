"""What the core writes it reads back, and what it cannot read it refuses by name."""

import dataclasses
import json

import pytest

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.kept.restore import StateUnreadable, restore
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.job import JobState, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import LaunchSettings
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, ServiceSpec, TaskRole
from samples.states import a_spec
from simulated.scheduler import small_job, started


def test_a_job_with_a_verdict_comes_back_as_it_was():
    job = JobState(verdict=Verdict(Outcome.FAILED, 3, "no"))
    assert codec.decode(JobState, codec.encode(job)) == job


def test_the_same_value_always_gives_the_same_bytes():
    one = ClusterSpec(1, {"a-0": "x", "b-0": "y"})
    other = ClusterSpec(1, {"b-0": "y", "a-0": "x"})
    assert codec.encode(one) == codec.encode(other)


def test_a_field_that_an_older_version_did_not_write_takes_its_default():
    plain = codec.to_plain(JobState())
    del plain["restart"]
    assert codec.decode(JobState, json.dumps(plain).encode()) == JobState()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"incidents": [{"task": 1}]}', "field 'at' is missing"),
        (b'{"restart": {"members": ["a", 1]}}', r"JobState\.restart\.members\[1\]: expected"),
        (b'{"verdict": {"outcome": "no"}}', "JobState.verdict: field 'exit_code' is missing"),
        (b"{", "not JSON"),
        (b"[]", "expected an object"),
        (b'{"nonsense": 1}', "nonsense"),
        (b'{"phase": "asleep"}', "asleep"),
        (b'{"fruitless": "two"}', "fruitless"),
        (b'{"fruitless": true}', "fruitless"),
        (b'{"incidents": {}}', "incidents"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(data, words):
    with pytest.raises(codec.RecordError, match=words):
        codec.decode(JobState, data)


def test_what_is_stored_is_the_same_to_the_byte_in_every_version():
    """Else each running service would see another configuration after an upgrade."""
    job = JobState(verdict=Verdict(Outcome.FAILED, 3, "\u00fc"), result={"b": 1, "a": ()})
    text = codec.encode(job).decode()
    assert text.startswith('{"best_step":null,"deadline":0.0,"deployed":false,"finished_at":0.0,')
    assert '"result":{"a":[],"b":1}' in text
    assert '"verdict":{"exit_code":3,"outcome":"failed","summary":"\\u00fc"}' in text
    assert configuration_id(a_spec()) == "e727a477-1688-5394-8689-a16f049b46a0"


def test_what_was_worked_out_of_a_value_is_not_stored_with_it():
    spec = small_job()
    before = codec.encode(spec)
    assert spec.fingerprints
    assert codec.encode(spec) == before


def test_what_json_does_not_have_is_not_stored():
    with pytest.raises(TypeError):
        codec.encode({"agents": b"a1"})


def test_a_set_is_stored_in_the_order_of_its_items():
    text = codec.encode({"agents": frozenset({"a2", "a1"})})
    assert text == b'{"agents":["a1","a2"]}'
    assert codec.decode(dict[str, frozenset[str]], text) == {"agents": frozenset({"a1", "a2"})}


def test_a_number_that_is_a_key_comes_back_as_one():
    assert codec.decode(dict[int, str], codec.encode({7: "a"})) == {7: "a"}
    with pytest.raises(codec.RecordError, match="expected a number"):
        codec.decode(dict[int, str], b'{"seven":"a"}')


def test_the_whole_state_comes_back_from_the_store_after_a_crash():
    scheduler = started()
    before = scheduler.state
    after = restore(scheduler.store, LaunchSettings(), scheduler.cluster.now)
    kept = ("spec", "instance", "framework_id", "epoch", "tasks", "job", "abandoned")
    assert {k: getattr(after, k) for k in kept} == {k: getattr(before, k) for k in kept}
    assert after.settings.token_key == before.settings.token_key


def test_an_empty_store_is_a_new_service():
    assert restore({}, LaunchSettings(), 0.0) is None


@pytest.mark.parametrize(
    "path", ["Gangs/main/Epoch", "Gangs/main/Job", "Properties/service", "Tasks/ps-0/TaskInfo"]
)
def test_a_damaged_value_is_named(path):
    scheduler = started()
    scheduler.store[path] = b"{broken"
    with pytest.raises(StateUnreadable, match=path):
        restore(scheduler.store, LaunchSettings(), scheduler.cluster.now)


@pytest.mark.parametrize("name", ["worker-0A", "nobody-0", "ps-1", "x"])
def test_a_record_under_a_name_that_is_not_its_tasks_is_named(name):
    """Found by ``tests.fuzz``: such a name was taken, and ended the first step."""
    scheduler = started()
    scheduler.store[f"Tasks/{name}/TaskInfo"] = scheduler.store["Tasks/ps-0/TaskInfo"]
    with pytest.raises(StateUnreadable, match=f"Tasks/{name}/TaskInfo"):
        restore(scheduler.store, LaunchSettings(), scheduler.cluster.now)


@pytest.mark.parametrize("name", ["worker-Y0", "nobody-0", "x"])
def test_a_member_of_the_cluster_that_is_no_task_is_named(name):
    """Found by ``tests.fuzz``: such a member was taken, and ended the first step."""
    scheduler = started()
    epoch = json.loads(scheduler.store["Gangs/main/Epoch"])
    epoch["addresses"][name] = "10.0.0.1:1"
    scheduler.store["Gangs/main/Epoch"] = json.dumps(epoch).encode()
    with pytest.raises(StateUnreadable, match="Gangs/main/Epoch"):
        restore(scheduler.store, LaunchSettings(), scheduler.cluster.now)


def test_a_launch_whose_record_was_only_half_written_was_never_sent():
    scheduler = started()
    del scheduler.store["Tasks/ps-0/TaskStatus"]
    restored = restore(scheduler.store, LaunchSettings(), scheduler.cluster.now)
    assert restored.tasks["ps-0"].terminal


def test_a_configuration_read_back_from_the_store_is_the_same_configuration():
    small = Resources(cpus=1, mem=64, disk=10)
    spec = small_job(roles=(RoleSpec(TaskRole.WORKER, 1, small),))
    stored = codec.decode(ServiceSpec, codec.encode(spec))
    assert configuration_id(stored) == configuration_id(spec)


def test_other_options_are_another_configuration():
    spec = small_job()
    assert configuration_id(spec) == configuration_id(small_job())
    assert configuration_id(spec) != configuration_id(dataclasses.replace(spec, user="other"))
