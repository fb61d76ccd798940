"""Which code and which tasks do not go together, and what is said then."""

import pytest

from dcos_tensorflow.job_code.agreement import Tasks, check, doubts
from dcos_tensorflow.job_code.facts import read_facts
from dcos_tensorflow.job_code.modules import JobUnusable

PLAIN = "import tensorflow as tf\nmodel.fit(x, epochs=2)"
SERVERS = "import tensorflow as tf\ns = tf.distribute.ParameterServerStrategy(resolver)"
MIRRORED = "import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()"


@pytest.fixture
def judged(found_in, tmp_path):
    """Return a function that says why a job is refused, and what is doubted of it."""

    def of(source, files=None, command="", **tasks):
        found = found_in(source, files, command=command)
        facts = read_facts(found, str(tmp_path))
        wanted = Tasks(**tasks)
        refused = ""
        try:
            check(found.contract, facts, wanted)
        except JobUnusable as error:
            refused = f"{error}; {error.hint}"
        return refused, " ".join(doubts(found.contract, facts, wanted))

    return of


@pytest.mark.parametrize("tasks", [{"workers": 1}, {"workers": 3}, {"chiefs": 1, "workers": 2}])
def test_a_plain_script_with_parameter_servers_is_refused_with_the_remedy(judged, tasks):
    refused, _ = judged(PLAIN, servers=2, **tasks)
    assert refused.startswith("job.py names no cluster, strategy or Server: the parameter servers")
    assert 'set "parameter_server": {"count": 0}' in refused


def test_a_plain_command_with_parameter_servers_is_refused(judged):
    refused, _ = judged("", {"train.py": PLAIN}, "python train.py --epochs 3", servers=1, workers=1)
    assert refused.startswith("service.job_cmd names no cluster, strategy or Server")


def test_a_strategy_for_one_machine_with_parameter_servers_is_refused(judged):
    refused, _ = judged("s = tf.distribute.MirroredStrategy()", servers=1, workers=1)
    assert "names no cluster" in refused


@pytest.mark.parametrize(
    "source",
    [
        "import os; os.environ['TF_CONFIG']",
        "import horovod.tensorflow as hvd",
        "import ours",
        "import subprocess",
        "s = tf.distribute.Server(spec)",
        "import os; role = os.environ['ROLE']",
        "def main(server, log_dir, context): pass",
    ],
)
def test_code_that_may_know_what_a_parameter_server_is_is_taken(judged, source):
    refused, _ = judged(source, servers=1, workers=1, variables=frozenset({"ROLE"}))
    assert refused == ""


def test_a_variable_that_is_the_same_for_all_tells_no_server_from_a_worker(judged):
    refused, _ = judged("import os; os.environ['EPOCHS']", servers=1, workers=1)
    assert "names no cluster" in refused


@pytest.mark.parametrize("tasks", [{}, {"workers": 1}, {"chiefs": 1}])
def test_a_plain_script_in_one_task_is_what_it_is_made_for(judged, tasks):
    assert judged(PLAIN, **tasks) == ("", "")


def test_a_plain_script_in_several_tasks_is_doubted(judged):
    refused, doubted = judged(PLAIN, workers=2)
    assert refused == ""
    assert "each of the 2 tasks does all of the work, into the same place" in doubted
    assert "MultiWorkerMirroredStrategy" in doubted
    assert "service.strategy to independent" in doubted


def test_several_tasks_that_are_said_to_train_by_themselves_are_not_doubted(judged):
    assert judged(PLAIN, workers=2, independent=True) == ("", "")


def test_several_tasks_that_a_variable_tells_apart_are_not_doubted(judged):
    source = "import os; os.environ['SEED']"
    assert judged(source, workers=2, variables=frozenset({"SEED"})) == ("", "")


def test_a_parameter_server_strategy_without_a_chief_is_refused_where_it_is_named(judged):
    refused, _ = judged(SERVERS, servers=1, workers=2)
    assert refused.startswith("ParameterServerStrategy (job.py:2) needs a chief")
    assert refused.endswith('set "chief": {"count": 1}')


def test_a_parameter_server_strategy_without_a_worker_is_refused(judged):
    refused, _ = judged(SERVERS, servers=1, chiefs=1)
    assert "needs at least one worker beside the chief" in refused


def test_a_parameter_server_strategy_with_all_that_it_needs_is_taken(judged):
    assert judged(SERVERS, servers=1, chiefs=1, workers=2) == ("", "")


def test_a_parameter_server_strategy_without_servers_may_not_be_used_and_is_doubted(judged):
    refused, doubted = judged(SERVERS, workers=2)
    assert refused == ""
    assert "ParameterServerStrategy (job.py:2) needs parameter servers" in doubted
    assert judged(SERVERS, workers=1) == ("", "")


def test_a_mirrored_strategy_with_parameter_servers_is_refused(judged):
    refused, _ = judged(MIRRORED, servers=2, workers=2)
    assert refused.startswith(
        "MultiWorkerMirroredStrategy (job.py:2) has no parameter servers, 2 are wanted"
    )
    assert judged(MIRRORED, workers=2) == ("", "")


@pytest.mark.parametrize(
    "more",
    [
        "\nimport ours",
        "\nresolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec)",
        "\nimport os; os.environ['TF_CONFIG'] = with_a_chief(os.environ['TF_CONFIG'])",
    ],
)
def test_a_strategy_whose_cluster_may_be_another_is_doubted_and_not_refused(judged, more):
    refused, doubted = judged(SERVERS + more, servers=1, workers=2)
    assert refused == ""
    assert "needs a chief" in doubted


def test_a_script_that_seems_plain_is_doubted_with_what_hides_the_rest(judged):
    refused, doubted = judged(f"import ours\n{PLAIN}", servers=1, workers=1)
    assert refused == ""
    assert doubted.startswith("job.py names no cluster, strategy or Server: ")
    assert "as far as the code can be read (job.py:1 imports ours)" in doubted


def test_nothing_is_said_of_a_command_that_may_run_anything(judged):
    assert judged("", command="./train.sh", servers=1, workers=1) == ("", "")


def test_code_that_chooses_its_strategy_when_it_runs_is_neither(judged):
    both = SERVERS + "\n" + MIRRORED
    assert judged(both, servers=1, workers=2) == ("", "")
    assert judged(both, workers=2) == ("", "")


def test_code_without_a_word_of_an_evaluator_is_doubted_where_there_is_one(judged):
    _, doubted = judged(PLAIN, workers=1, evaluators=1)
    assert "job.py knows of no evaluator" in doubted
    knows = PLAIN + "\nif kind == 'evaluator': pass"
    assert judged(knows, workers=1, evaluators=1) == ("", "")


@pytest.mark.parametrize("source", [SERVERS, MIRRORED])
def test_a_strategy_in_a_function_is_refused_where_its_server_would_be_a_second_one(judged, source):
    body = source.splitlines()[1]
    function = f"import tensorflow as tf\ndef main(server, log_dir, context):\n    {body}"
    refused, _ = judged(function, servers=1, chiefs=1, workers=1)
    assert refused.startswith("main(server, log_dir, context) of job.py is called with a server")
    assert "service.job_contract to script" in refused
    assert judged(function, workers=1) == ("", "")


@pytest.mark.parametrize("tasks", [{"workers": 1}, {"workers": 2}])
def test_code_that_assigns_tf_config_is_doubted_where_it_does_so(judged, tasks):
    source = f"import os\nos.environ['TF_CONFIG'] = '{{}}'\n{MIRRORED}"
    refused, doubted = judged(source, **tasks)
    assert refused == ""
    assert doubted.startswith("job.py:2 assigns TF_CONFIG in place of the one that each task finds")
    assert "leave TF_CONFIG as you find it" in doubted


ESTIMATOR = "import tensorflow as tf\ntf.estimator.train_and_evaluate(e, t, v)"


@pytest.mark.parametrize("tasks", [{"servers": 1, "workers": 2}, {"workers": 2}])
def test_an_estimator_without_a_chief_is_refused_with_the_remedy(judged, tasks):
    refused, _ = judged(ESTIMATOR, **tasks)
    assert refused.startswith("train_and_evaluate (job.py:2) needs a chief")
    assert 'set "chief": {"count": 1} and "worker": {"count": 1}' in refused


@pytest.mark.parametrize("tasks", [{"servers": 1, "chiefs": 1, "workers": 2}, {"workers": 1}])
def test_an_estimator_with_a_chief_or_alone_is_taken(judged, tasks):
    assert judged(ESTIMATOR, **tasks) == ("", "")
