"""What a job's code says of its training, read without running it."""

import sys

import pytest

from dcos_tensorflow.job_code.facts import job_strategy, put_under_strategy, read_facts
from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.job_code.sources import MAX_FILE_BYTES, MAX_FILES


@pytest.fixture
def facts_of(found_in, tmp_path):
    """Return a function that says the facts of a job made of ``files``."""

    def of(source="", files=None, **job):
        return read_facts(found_in(source, files, **job), str(tmp_path))

    return of


@pytest.fixture
def strategy_of(found_in, tmp_path):
    """Return a function that says the strategy of a job made of ``files``."""

    def of(source="", files=None, **job):
        found = found_in(source, files, **job)
        return job_strategy(found, read_facts(found, str(tmp_path)))

    return of


FITS = "import tensorflow as tf\nmodel = tf.keras.Sequential([])\nmodel.fit(x, y)\n"


@pytest.mark.parametrize(
    ("has_servers", "strategy"), [(False, "multi_worker"), (True, "parameter_server")]
)
def test_code_of_one_task_recovers_by_the_strategy_that_it_is_put_under(
    facts_of, has_servers, strategy
):
    assert put_under_strategy(facts_of(FITS), has_servers=has_servers).strategy == strategy


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (f"{FITS}tf.distribute.MirroredStrategy()\n", "distributes its training itself"),
        ("import tensorflow as tf\nfor step in range(3):\n    print(step)\n", "calls no fit"),
    ],
)
def test_code_that_cannot_be_put_under_a_strategy_is_refused(facts_of, source, why):
    with pytest.raises(JobUnusable, match=why):
        put_under_strategy(facts_of(source), has_servers=False)


def test_code_that_chooses_by_its_cluster_uses_its_parameter_servers(found_in, tmp_path):
    found = found_in(
        "tf.distribute.ParameterServerStrategy(r)\ntf.distribute.MirroredStrategy()\n"
        "tf.distribute.MultiWorkerMirroredStrategy()"
    )
    facts = read_facts(found, str(tmp_path))
    assert job_strategy(found, facts) == ""
    assert job_strategy(found, facts, has_servers=True) == "parameter_server"


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


KERAS = """
    '''Trains alone: neither TF_CONFIG nor a Server.'''
    import argparse, json, os, sys
    import numpy as np
    import tensorflow as tf
    from tensorflow import keras

    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    os.environ.update({"KERAS_BACKEND": "tensorflow"})
    directory = os.environ.get("CHECKPOINT_DIR") or os.getenv("LOG_DIR", "/tmp")
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        print(os.environ.pop("CUDA_VISIBLE_DEVICES", None))
    optimizer = getattr(keras.optimizers, "Adam")()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer=optimizer, loss="mse")
    model.fit(np.zeros((8, 1)), np.zeros((8, 1)), epochs=2)
    model.save(os.path.join(directory, "model.keras"))
"""


@pytest.mark.parametrize(
    "source",
    [
        KERAS,
        "import tensorflow as tf",
        "s = tf.distribute.MirroredStrategy()",
        "from tensorflow.distribute import MirroredStrategy",
        "s = tf.distribute.get_strategy()",
        "s = tf.distribute.experimental.CentralStorageStrategy()",
        "isinstance(s, tf.distribute.ParameterServerStrategy)",
        "def f(s: tf.distribute.ParameterServerStrategy): pass",
        "import sklearn.datasets, pandas, matplotlib.pyplot, tqdm",
        "from dcos_tensorflow import report\nreport(1, loss=0.5)",
        "import glob, pathlib, threading, multiprocessing, urllib.request, logging",
        "for name in sorted(globals()): print(name)",
        "import importlib.util\nfound = importlib.util.find_spec('tf_keras')",
    ],
)
def test_code_that_looks_at_nothing_but_its_own_process_is_plain(facts_of, source):
    facts = facts_of(source)
    assert facts.hidden == ""
    assert facts.is_plain


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("os.environ['TF_CONFIG']", "TF_CONFIG"),
        ("json.loads(os.environ.get('TF_CONFIG', '{}'))", "TF_CONFIG"),
        ("if 'TF_CONFIG' in os.environ: pass", "TF_CONFIG"),
        ("environ['TASK_NAME']", "TASK_NAME"),
        ("KEY = 'TF_' 'CONFIG'", "TF_CONFIG"),
        ("print(f'{os.environ[\"DATA_SHARD_INDEX\"]}')", "DATA_SHARD_INDEX"),
        ("os.getenv('JOB_NAME')", "JOB_NAME"),
        ("tf.compat.v1.Session('grpc://a:1')", "grpc"),
        ("tf.distribute.cluster_resolver.TFConfigClusterResolver()", "TFConfigClusterResolver"),
        ("s = tf.distribute.Server(spec)", "Server"),
        ("tf.train.ClusterSpec({})", "ClusterSpec"),
        ("tf.estimator.Estimator(f)", "estimator"),
        ("s = tf.distribute.TPUStrategy(r)", "TPUStrategy"),
        ("s = tf.distribute.MultiWorkerMirroredStrategy()", "MultiWorkerMirroredStrategy"),
        ("keras.distribution.initialize()", "distribution"),
        ("tf.data.experimental.service.DispatchServer()", "DispatchServer"),
        ("tf.config.experimental_connect_to_host('a')", "experimental_connect_to_host"),
    ],
)
def test_what_looks_beyond_its_own_process_is_named_with_its_line(facts_of, source, name):
    facts = facts_of("import json, os\nfrom os import environ\n" + source)
    assert not facts.is_plain
    assert (facts.cluster.name, facts.cluster.place) == (name, "job.py:3")


@pytest.mark.parametrize(
    ("source", "hidden"),
    [
        ("import horovod.tensorflow as hvd", "imports horovod"),
        ("from . import absent", "imports a missing module"),
        ("import subprocess", "imports subprocess"),
        ("importlib.import_module(name)", "has importlib.import_module"),
        ("from importlib import import_module", "has import_module"),
        ("importlib.util.spec_from_file_location(a, b)", "has util.spec_from_file_location"),
        ("import socket", "imports socket"),
        ("try: import ours\nexcept ImportError: pass", "imports ours"),
        ("exec(text)", "has exec"),
        ("__import__(name)", "has __import__"),
        ("os.system('python other.py')", "has os.system"),
        ("from os import execv", "has os.execv"),
        ("from os import environ as e", "has environ by another name"),
        ("role = os.environ[key]", "has os.environ"),
        ("child(env=dict(os.environ))", "has os.environ"),
        ("ask = os.getenv", "has os.getenv"),
        ("os.getenv(key)", "has os.getenv"),
        ("os.environ.get(key)", "has os.environ"),
        ("os.path.expandvars('$ROLE')", "has path.expandvars"),
        ("import click", "imports click"),
        ("s = getattr(tf.distribute, name)()", "has tf.distribute"),
        ("s = getattr(tf, name)", "has getattr(tf, ...)"),
        ("from tensorflow import distribute as d", "has tf.distribute"),
        ("from tensorflow import *", "has from tensorflow import *"),
    ],
)
def test_what_may_do_more_than_can_be_read_makes_nothing_sure(facts_of, source, hidden):
    facts = facts_of(source)
    assert facts.hidden == f"job.py:1 {hidden}"
    assert not facts.is_plain


@pytest.mark.parametrize(
    "text", ["%matplotlib inline\n!pip install x\n", b"x = '\xe9'\n", "def (", b"\0"]
)
def test_a_file_that_is_no_python_makes_nothing_sure(facts_of, text):
    assert (
        facts_of("import other", {"other.py": text}).hidden == "other.py cannot be read as Python"
    )


def test_modules_that_import_each_other_are_read_once(facts_of):
    files = {"a.py": "import b, job", "b.py": "from a import x"}
    assert facts_of("import a", files).is_plain


def test_relative_imports_are_the_jobs_own(facts_of):
    files = {
        "pack/__init__.py": "",
        "pack/train.py": "from . import data\nfrom .model import build\nfrom ..pack import data",
        "pack/data.py": "",
        "pack/model.py": "",
    }
    assert facts_of(files=files, name="pack.train").is_plain


def test_a_strategy_is_told_with_its_file_and_line(facts_of):
    files = {"pack/__init__.py": "", "pack/part.py": MULTI_WORKER}
    named = facts_of("from pack import part", files).named
    assert (named.name, named.place) == ("MultiWorkerMirroredStrategy", "pack/part.py:2")


def test_the_strategy_itself_is_told_rather_than_what_goes_with_it(facts_of):
    source = """\
        c = tf.distribute.coordinator.ClusterCoordinator(
            tf.distribute.ParameterServerStrategy(r))
    """
    facts = facts_of(source)
    assert (facts.named.name, facts.named.place) == ("ParameterServerStrategy", "job.py:2")


def test_a_cluster_of_the_codes_own_is_told(facts_of):
    source = "r = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(c))"
    assert facts_of(source).own_cluster
    assert not facts_of("tf.distribute.cluster_resolver.TFConfigClusterResolver()").own_cluster


def test_a_variable_that_the_code_sets_is_none_that_it_asks_for(facts_of):
    assert facts_of("import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '2'").variables == frozenset()
    assert facts_of("import os\nos.environ['TF_ROLE']").variables == {"TF_ROLE"}


def test_variables_that_may_differ_from_task_to_task_are_told(facts_of):
    facts = facts_of(
        "import os\nos.environ['PART'], os.getenv('HOME'), os.environ.get('DATA', 'x')"
    )
    assert facts.is_plain
    assert facts.variables == {"PART", "DATA"}


@pytest.mark.parametrize(
    "command",
    [
        "python3 train/run.py --steps 3",
        "cd train && exec python3 -u run.py",
        "python -m train.run",
        "pip install -r requirements.txt && X=1 python train/run.py | tee log.txt",
        "export A=1; mkdir -p out; python3.11 train/run.py",
        "python -m pip install x; python train/run.py < /dev/null > log.txt 2>&1 --steps 3",
    ],
)
def test_a_command_of_plain_files_is_plain(facts_of, command):
    facts = facts_of(files={"train/run.py": "print(1)"}, command=command)
    assert facts.hidden == ""
    assert facts.is_plain


@pytest.mark.parametrize(
    "command",
    [
        "./train.sh",
        "true",
        "horovodrun -np 2 python train/run.py",
        "python train/run.py; ./evaluate",
        "python train/run.py $(cat arguments)",
        "python train/run.py `cat arguments`",
        "python -c 'import other'",
        "python elsewhere/run.py",
        "python -m other.run",
        "python train/run.py < <(./arguments)",
        "python -m unittest train.run",
        "echo it's; python3 train/run.py",
        "jupyter nbconvert --execute train.ipynb",
        "python",
    ],
)
def test_a_command_that_may_run_more_is_not_sure(facts_of, command):
    facts = facts_of(files={"train/run.py": "print(1)"}, command=command)
    assert facts.hidden.startswith("service.job_cmd runs")


def test_what_a_command_passes_on_of_the_cluster_is_told(facts_of):
    command = "python train/run.py --job_name=$JOB_NAME --part ${PART:-0}"
    facts = facts_of(files={"train/run.py": "print(1)"}, command=command)
    assert (facts.cluster.name, facts.cluster.place) == ("JOB_NAME", "service.job_cmd")
    assert facts.variables == {"PART"}


@pytest.mark.parametrize(
    ("source", "fits"),
    [
        (KERAS, True),
        ("import keras\nmodel.fit(x)", True),
        ("from tensorflow.keras import Model\nself.network.fit(data, epochs=3)", True),
        ("import keras\nscaler.fit(x)", False),
        ("import sklearn.svm\nmodel.fit(x)", False),
        ("import tensorflow as tf", False),
    ],
)
def test_a_fit_of_keras_is_told(facts_of, source, fits):
    facts = facts_of(source)
    assert (facts.keras_fit is not None) is fits
    assert not facts.legacy_keras


@pytest.mark.parametrize(
    "source", ["import tf_keras as keras", "os.environ['TF_USE_LEGACY_KERAS'] = '1'"]
)
def test_code_that_asks_for_keras_2_itself_is_told(facts_of, source):
    assert facts_of(f"import os\n{source}\nkeras.Model().fit(x, epochs=1)").legacy_keras


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("if task['type'] == 'evaluator': pass", "evaluator"),
        ("tf.keras.utils.SidecarEvaluator(m)", "SidecarEvaluator"),
        ("for path in tf.train.checkpoints_iterator(d): pass", "checkpoints_iterator"),
        ("'''This is no evaluator.'''", None),
    ],
)
def test_what_knows_of_an_evaluator_is_told(facts_of, source, name):
    evaluator = facts_of(source).evaluator
    assert (evaluator.name if evaluator else None) == name


def test_a_tensorboard_has_no_code(facts_of):
    assert not facts_of(contract="tensorboard").is_plain


def test_modules_of_pythons_own_are_known_to_an_older_one_too(facts_of, monkeypatch):
    monkeypatch.delattr(sys, "stdlib_module_names")
    assert facts_of("import json, logging, sys, itertools").is_plain
    assert facts_of("import ours").hidden == "job.py:1 imports ours"


def test_code_that_nests_too_deep_makes_nothing_sure(facts_of):
    files = {"deep.py": "x = " + "-" * 20_000 + "1"}
    assert facts_of("import deep", files).hidden == "deep.py cannot be read as Python"


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.environ['TF_CONFIG'] = '{}'",
        "import os\nos.environ.update(TF_CONFIG='{}')",
        "import os\nos.environ.update({'TF_CONFIG': '{}'})",
        "import os\nos.putenv('TF_CONFIG', '{}')",
        "import os\nos.environ.pop('TF_CONFIG', None)\nos.environ['TF_CONFIG'] = '{}'",
        "import os\ndel os.environ['TF_CONFIG']\nos.environ['TF_CONFIG'] = '{}'",
        "import os\nos.environ['TF_CONFIG'] = '{}'\nprint(os.environ['TF_CONFIG'])",
    ],
)
def test_code_that_assigns_tf_config_without_having_asked_for_it_is_told(facts_of, source):
    assert facts_of(source).tf_config.place.startswith("job.py:")


@pytest.mark.parametrize(
    "source",
    [
        "import os\nif 'TF_CONFIG' not in os.environ:\n    os.environ['TF_CONFIG'] = '{}'",
        "import os\nif not os.environ.get('TF_CONFIG'): os.environ['TF_CONFIG'] = '{}'",
        "import os\nos.environ.setdefault('TF_CONFIG', '{}')",
        "import os\nc = os.environ['TF_CONFIG']\nos.environ['TF_CONFIG'] = c.replace('a', 'b')",
        "import os\nos.environ.update(SEED='1')",
        "print('TF_CONFIG')",
    ],
)
def test_code_that_looks_at_the_tf_config_that_it_finds_may_change_it(facts_of, source):
    assert facts_of(source).tf_config is None


def test_a_command_that_assigns_tf_config_is_told(facts_of):
    command = "export TF_CONFIG='{}'; python job.py"
    assert facts_of("", command=command).tf_config.place == "service.job_cmd"
