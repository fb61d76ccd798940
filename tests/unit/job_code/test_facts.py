"""How a job is distributed, read from its code."""

import textwrap

import pytest

from dcos_tensorflow.job_code.facts import job_strategy, read_facts
from dcos_tensorflow.job_code.sources import MAX_FILE_BYTES, MAX_FILES
from dcos_tensorflow.task.contracts import find_contract
from dcos_tensorflow.task.spec import Job


@pytest.fixture
def strategy_of(tmp_path):
    """Return a function that says the strategy of a job made of ``files``."""

    def of(source="", files=None, **job):
        for name, text in {"job.py": source, **(files or {})}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(textwrap.dedent(text))
        found = find_contract(Job(**{"name": "job", **job}), str(tmp_path))
        return job_strategy(found, read_facts(found, str(tmp_path)))

    return of


@pytest.mark.parametrize(
    ("source", "strategy"),
    [
        ("s = tf.distribute.ParameterServerStrategy(r)", "parameter_server"),
        ("s = tf.distribute.experimental.ParameterServerStrategy(r)", "parameter_server"),
        ("c = tf.distribute.coordinator.ClusterCoordinator(s)", "parameter_server"),
        ("from tensorflow.distribute import ParameterServerStrategy as P", "parameter_server"),
        ("s = tf.distribute.MultiWorkerMirroredStrategy()", "multi_worker"),
        ("s = tf.distribute.experimental.MultiWorkerMirroredStrategy()", "multi_worker"),
        ("C = collective_all_reduce_strategy.CollectiveAllReduceStrategy", "multi_worker"),
        ("tf.compat.v1.train.Server(spec)", "between_graph"),
        ("from tensorflow.compat.v1.train import Server", "between_graph"),
        ("tf.train.MonitoredTrainingSession(server.target)", "between_graph"),
        ("with tf.device(tf.train.replica_device_setter()): pass", "between_graph"),
        ("tf.estimator.train_and_evaluate(e, t, v)", "between_graph"),
        ("s = tf.distribute.MirroredStrategy()", "independent"),
        ("s = tf.distribute.Server(spec)", ""),
        ("import tensorflow as tf", ""),
        ("# tf.distribute.MultiWorkerMirroredStrategy()", ""),
        ("'tf.distribute.MultiWorkerMirroredStrategy()'", ""),
        ("def f(s: tf.distribute.MultiWorkerMirroredStrategy): pass", ""),
        ("isinstance(s, tf.distribute.MultiWorkerMirroredStrategy)", ""),
    ],
)
def test_the_usual_forms_are_recognised(strategy_of, source, strategy):
    assert strategy_of(source) == strategy


def test_a_coordinator_with_its_servers_is_a_parameter_server_strategy(strategy_of):
    source = """
        if role in ("worker", "ps"):
            tf.distribute.Server(spec).join()
        s = tf.distribute.ParameterServerStrategy(resolver)
        c = tf.distribute.coordinator.ClusterCoordinator(s)
    """
    assert strategy_of(source) == "parameter_server"


def test_an_estimator_with_parameter_servers_trains_between_graphs(strategy_of):
    source = """
        s = tf.distribute.experimental.ParameterServerStrategy()
        tf.estimator.train_and_evaluate(e, t, v)
    """
    assert strategy_of(source) == "between_graph"


def test_code_that_chooses_when_it_runs_is_not_judged(strategy_of):
    source = """
        strategy = {
            "ps": tf.distribute.ParameterServerStrategy,
            "mirrored": tf.distribute.MultiWorkerMirroredStrategy,
        }[name]
    """
    assert strategy_of(source) == ""


def test_a_strategy_for_one_machine_beside_one_for_many_is_the_fall_back(strategy_of):
    source = """
        if cluster:
            s = tf.distribute.MultiWorkerMirroredStrategy()
        else:
            s = tf.distribute.MirroredStrategy()
    """
    assert strategy_of(source) == "multi_worker"


def test_a_function_is_between_graph_whatever_its_code_names(strategy_of):
    source = "def main(server, log_dir, context): tf.distribute.MultiWorkerMirroredStrategy()"
    assert strategy_of(source) == "between_graph"


MULTI_WORKER = (
    "import tensorflow as tf\ndef s(): return tf.distribute.MultiWorkerMirroredStrategy()"
)


@pytest.mark.parametrize(
    ("source", "files"),
    [
        ("import other", {"other.py": MULTI_WORKER}),
        ("from other import s", {"other.py": MULTI_WORKER}),
        ("def f():\n    import pack.part", {"pack/__init__.py": "", "pack/part.py": MULTI_WORKER}),
        ("from pack import part", {"pack/__init__.py": "", "pack/part.py": MULTI_WORKER}),
        ("from pack import s", {"pack/__init__.py": MULTI_WORKER}),
        ("from space import part", {"space/part.py": MULTI_WORKER}),
        (
            "import pack",
            {
                "pack/__init__.py": "from .part import s",
                "pack/part.py": "from . import deep",
                "pack/deep.py": "from ..other import s\nfrom ..pack import part",
                "other.py": MULTI_WORKER,
            },
        ),
    ],
)
def test_what_the_module_imports_of_the_job_is_read_too(strategy_of, source, files):
    assert strategy_of(source, files) == "multi_worker"


def test_a_package_is_read_with_its_main(strategy_of):
    files = {"pack/__init__.py": "", "pack/__main__.py": MULTI_WORKER}
    assert strategy_of(files=files, name="pack") == "multi_worker"


@pytest.mark.parametrize(
    "command",
    [
        "python3 train/run.py --steps 3",
        "cd train && exec python3 run.py",
        "python3 -m train.run; echo done",
        "FOO=1 'python3' \"train/run.py\">log",
        "echo it's; python3 train/run.py",
    ],
)
def test_the_files_that_a_command_names_are_read(strategy_of, command):
    assert strategy_of(files={"train/run.py": MULTI_WORKER}, command=command) == "multi_worker"


def test_a_command_without_python_is_not_judged(strategy_of):
    assert strategy_of(command="./train.sh") == ""


@pytest.mark.parametrize(
    "source", ["def (", "\x00", r"x = '\d' is 1", "x = " + "(" * 5000 + ")" * 5000]
)
def test_code_that_cannot_be_parsed_is_passed_over(strategy_of, source):
    files = {"other.py": MULTI_WORKER, "broken.py": source}
    assert strategy_of("import broken, other", files) == "multi_worker"


def test_too_much_code_is_not_judged(strategy_of):
    files = {f"m{n}.py": f"import m{n + 1}" for n in range(MAX_FILES + 1)}
    assert strategy_of("import m0\n" + MULTI_WORKER, files) == ""


def test_a_huge_file_is_not_judged(strategy_of):
    files = {"data.py": "X = '" + "x" * MAX_FILE_BYTES + "'"}
    assert strategy_of("import data\n" + MULTI_WORKER, files) == ""


def test_modules_of_a_directory_beside_the_job_are_not_read(strategy_of, tmp_path):
    (tmp_path.parent / "outside.py").write_text(MULTI_WORKER)
    assert strategy_of("from .. import outside\nimport outside") == ""
