"""From options to what a scheduler is given."""

import json
import os
import sys

import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.spec.service_spec import PackagesSpec
from dcos_tensorflow.deploy.embedded import interpreters
from dcos_tensorflow.deploy.job import preparation
from dcos_tensorflow.deploy.job.preparation import archives_in_force, changed_spec, prepare
from dcos_tensorflow.options import OptionsError, effective, load
from dcos_tensorflow.options.sections.images import DEFAULT_TENSORFLOW


@pytest.fixture
def directory(tmp_path):
    return WorkDirectory(tmp_path / "work").service("job")


@pytest.fixture
def options(tmp_path):
    def write(**service):
        service = {"name": "job", "python": sys.executable, **service}
        document = {"service": service, "parameter_server": {"count": 0}, "worker": {"count": 2}}
        (tmp_path / "options.json").write_text(json.dumps(document))
        return load(tmp_path / "options.json")

    return write


@pytest.fixture
def function_job(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "mnist.py").write_text("def main(server, log_dir, context):\n    pass\n")
    return {"job_url": "code", "job_name": "mnist"}


def test_checkpoints_of_a_local_job_lie_in_the_service_s_folder(options, directory):
    prepared = prepare(options(job_cmd="true"), directory, {}, local=True)
    assert prepared.spec.job.checkpoint_dir == str(directory.checkpoints)


def test_a_shared_file_system_of_the_job_s_own_is_kept(options, directory):
    asked = options(job_cmd="true", shared_filesystem="/shared")
    assert prepare(asked, directory, {}, local=True).spec.job.checkpoint_dir == ""


def test_no_container_is_used_on_this_machine(options, directory):
    asked = options(job_cmd="true", python="", tf_image="me/mine")
    prepared = prepare(asked, directory, {}, local=True)
    assert all(role.container is None for role in prepared.spec.roles)
    assert any("service.tf_image: not used here" in note for note in prepared.notes)


def test_nothing_is_said_of_images_that_are_not_named(options, directory):
    prepared = prepare(options(job_cmd="true"), directory, {}, local=True)
    assert not any("image" in note for note in prepared.notes)


def test_nothing_is_said_of_options_that_have_their_defaults(options, directory):
    every = effective(options(job_cmd="true"))
    prepared = prepare(load(every), directory, {}, local=True)
    assert not any("not used here" in note for note in prepared.notes)


def test_on_a_cluster_the_options_stay_as_they_are(options, directory):
    asked = options(job_cmd="true", python="", user="me", tf_image="me/mine")
    spec = prepare(asked, directory, {}, local=False).spec
    assert spec.user == "me"
    assert {role.container and role.container.image for role in spec.roles} == {"me/mine"}


def test_code_beside_the_options_file_is_packed(options, directory, function_job):
    prepared = prepare(options(**function_job), directory, {}, local=False)
    assert prepared.archive is not None
    assert prepared.archive.is_relative_to(directory.artifacts)


def test_how_the_code_is_called_is_seen_from_it(options, directory, function_job):
    assert prepare(options(**function_job), directory, {}, local=True).code.contract == "function"


def test_a_url_is_left_to_the_fetcher(options, directory):
    asked = options(job_url="https://127.0.0.1/job.zip", job_name="mnist")
    assert prepare(asked, directory, {}, local=True).archive is None


def test_a_missing_module_is_answered_with_the_nearest(options, directory, function_job):
    with pytest.raises(UsageError, match="did you mean mnist"):
        prepare(options(**{**function_job, "job_name": "mnits"}), directory, {}, local=True)


def test_a_module_without_main_cannot_be_called(options, directory, function_job, tmp_path):
    (tmp_path / "code" / "mnist.py").write_text("print(1)\n")
    with pytest.raises(UsageError, match=r"has no main\(server, log_dir, context\)"):
        prepare(options(**function_job, job_contract="function"), directory, {}, local=True)


def test_code_of_before_is_replaced_only_by_a_leader_whose_options_are_in_force(
    options, directory, function_job, tmp_path
):
    first = prepare(options(**function_job), directory, {}, local=True)
    kept, _ = archives_in_force(first, directory, True)
    before = kept.read_bytes()
    (tmp_path / "code" / "mnist.py").write_text("def main(server, log_dir, context): pass  # new\n")
    refused = prepare(options(**function_job), directory, {}, local=True)
    assert kept.read_bytes() == before, "nothing is replaced before the right to it is held"
    assert archives_in_force(refused, directory, False) == (kept, None)
    assert kept.read_bytes() == before
    taken = prepare(options(**function_job), directory, {}, local=True)
    assert archives_in_force(taken, directory, True) == (kept, None)
    assert kept.read_bytes() != before
    assert [path.name for path in directory.artifacts.glob("*.zip")] == [kept.name]


def test_what_was_packed_long_ago_and_never_begun_is_removed(options, directory, function_job):
    directory.prepare()
    left = directory.artifacts / "packed-job-999999999.zip"
    left.touch()
    os.utime(left, (0, 0))
    published = directory.artifacts / "job-0123456789abcdef.zip"
    published.touch()
    prepare(options(**function_job), directory, {}, local=True)
    assert not left.exists()
    assert published.exists(), "what tasks fetch is another's"


def test_an_archive_of_the_users_is_kept_as_it_was(options, directory, function_job, tmp_path):
    packed = prepare(options(**function_job), directory, {}, local=True).archive
    own = tmp_path / "own.zip"
    own.write_bytes(packed.read_bytes())
    asked = options(job_url=str(own), job_name="mnist", job_contract="function")
    kept, _ = archives_in_force(prepare(asked, directory, {}, local=True), directory, True)
    assert kept.read_bytes() == own.read_bytes()
    assert own.exists()


def test_a_module_in_a_zip_is_looked_for_too(options, directory, function_job, tmp_path):
    packed = prepare(options(**function_job), directory, {}, local=True).archive
    assert packed is not None
    asked = options(job_url=str(packed), job_name="mnist", job_contract="function")
    assert prepare(asked, directory, {}, local=True).code.contract == "function"


def test_dns_names_are_refused_without_a_dns(tmp_path, directory):
    document = {"service": {"job_cmd": "true"}, "cluster_spec": {"addressing": "dns"}}
    with pytest.raises(UsageError, match=r"cluster_spec\.addressing"):
        prepare(load(document), directory, {}, local=True)


def test_a_virtual_network_is_refused_where_there_is_none(directory):
    document = {"service": {"job_cmd": "true", "virtual_network_enabled": True}}
    with pytest.raises(UsageError, match=r"service\.virtual_network_enabled: .* the network dcos"):
        prepare(load(document), directory, {}, local=True)


def test_taskcfg_variables_reach_the_tasks(options, directory):
    environ = {"TASKCFG_ALL_GREETING": "hello"}
    spec = prepare(options(job_cmd="true"), directory, environ, local=False).spec
    assert spec.roles[0].env["GREETING"] == "hello"


def test_a_python_that_is_not_there_is_named(options, directory):
    with pytest.raises(UsageError, match=r"service\.python: there is no /nowhere/python"):
        prepare(options(job_cmd="true", python="/nowhere/python"), directory, {}, local=True)


def test_a_roles_python_that_is_not_there_is_named_by_its_own_option(tmp_path, directory):
    document = {
        "service": {"job_cmd": "true", "python": sys.executable},
        "worker": {"python": "/nowhere/python"},
    }
    with pytest.raises(UsageError, match=r"^worker\.python: there is no /nowhere/python"):
        prepare(load(document), directory, {}, local=True)


def test_a_further_file_that_is_not_there_is_named(options, directory):
    asked = options(job_cmd="true", job_uris=["https://127.0.0.1/a", "nowhere.txt"])
    with pytest.raises(UsageError, match=r"^service\.job_uris\.1: there is no file .*nowhere"):
        prepare(asked, directory, {}, local=True)


def test_hdfs_settings_that_are_not_there_are_named(options, directory):
    asked = options(job_cmd="true", hdfs={"config_uri": "nowhere"})
    with pytest.raises(UsageError, match=r"^service\.hdfs\.config_uri: there is no file"):
        prepare(asked, directory, {}, local=True)


def test_a_further_file_beside_the_options_is_refused_where_agents_fetch_it(options, directory):
    asked = options(job_cmd="true", job_uris=["words.txt"])
    with pytest.raises(UsageError, match=r"^service\.job_uris\.0: agents cannot fetch words"):
        prepare(asked, directory, {}, local=False)


def test_a_tensorboard_sees_the_directory_that_all_tasks_share_on_this_machine(options, directory):
    asked = options(job_cmd="true", use_tensorboard=True)
    prepared = prepare(asked, directory, {}, local=True)
    assert not any("its own sandbox" in note for note in prepared.notes)


def test_a_folder_that_is_no_virtual_environment_is_named(options, directory, tmp_path):
    with pytest.raises(UsageError, match="is no virtual environment"):
        prepare(options(job_cmd="true", python=str(tmp_path)), directory, {}, local=True)


def environment_with_tensorflow(folder):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    package = folder / "lib" / "python3.11" / "site-packages" / "tensorflow"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()


@pytest.fixture
def no_tensorflow_here(monkeypatch, tmp_path):
    monkeypatch.setattr(interpreters.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    own = tmp_path / "checkout" / ".venv" / "bin" / "python"
    monkeypatch.setattr(interpreters, "this_interpreter", lambda: own)


def test_the_highest_version_beside_the_options_file_is_found(
    options, directory, tmp_path, no_tensorflow_here, function_job
):
    for version in ("2.9.0", "2.15.1"):
        environment_with_tensorflow(tmp_path / ".venvs" / f"tensorflow-{version}")
    prepared = prepare(options(**function_job, python=""), directory, {}, local=True)
    assert prepared.spec.roles[0].python == str(tmp_path / ".venvs" / "tensorflow-2.15.1")
    assert any("tensorflow-2.15.1" in note for note in prepared.notes)


def test_a_job_anywhere_finds_what_make_has_put_beside_the_program_s_own_environment(
    options, directory, tmp_path, no_tensorflow_here, function_job
):
    environment = tmp_path / "checkout" / ".venvs" / "tensorflow-2.21.0"
    environment_with_tensorflow(environment)
    prepared = prepare(options(**function_job, python=""), directory, {}, local=True)
    assert prepared.spec.roles[0].python == str(environment)


def test_where_there_is_no_tensorflow_the_newest_is_installed_for_the_tasks(
    options, directory, monkeypatch, function_job
):
    monkeypatch.setattr(preparation, "find_tensorflow", lambda places, version="": None)
    prepared = prepare(options(**function_job, python=""), directory, {}, local=True)
    assert {role.packages.tensorflow for role in prepared.spec.roles} == {DEFAULT_TENSORFLOW}
    assert any("make an environment" in note for note in prepared.notes)


def test_a_command_needs_no_tensorflow(options, directory, monkeypatch):
    monkeypatch.setattr(preparation, "find_tensorflow", lambda places, version="": None)
    prepared = prepare(options(job_cmd="true", python=""), directory, {}, local=True)
    assert prepared.spec.roles[0].python == sys.executable


def test_the_version_that_is_asked_for_is_found(
    options, directory, tmp_path, no_tensorflow_here, function_job
):
    for version in ("2.15.1", "2.21.0"):
        folder = tmp_path / ".venvs" / f"tensorflow-{version}"
        environment_with_tensorflow(folder)
        packages = folder / "lib" / "python3.11" / "site-packages"
        (packages / f"tensorflow_cpu-{version}.dist-info").mkdir()
    job = {**function_job, "python": "", "tensorflow_version": "2.15.1"}
    prepared = prepare(options(**job), directory, {}, local=True)
    assert prepared.spec.roles[0].python == str(tmp_path / ".venvs" / "tensorflow-2.15.1")


def test_a_version_that_is_nowhere_is_made_for_the_tasks(
    options, directory, tmp_path, no_tensorflow_here, function_job
):
    environment_with_tensorflow(tmp_path / ".venvs" / "tensorflow-2.21.0")
    job = {**function_job, "python": "", "tensorflow_version": "2.15.1"}
    prepared = prepare(options(**job), directory, {}, local=True)
    (worker,) = prepared.spec.roles
    assert worker.packages == PackagesSpec((), "2.15.1", str(directory.work))
    assert worker.python == sys.executable
    assert any("make an environment" in note for note in prepared.notes)


def test_an_environment_that_was_made_for_tasks_before_is_told_of(
    options, directory, no_tensorflow_here, function_job, monkeypatch
):
    job = {**function_job, "python": "", "tensorflow_version": "2.15.1"}
    monkeypatch.setattr(preparation, "environments_are_there", lambda *_: True)
    prepared = prepare(options(**job), directory, {}, local=True)
    assert any("installed for tasks before" in note for note in prepared.notes)


def test_requirements_that_name_a_tensorflow_choose_it(
    options, directory, tmp_path, no_tensorflow_here, function_job
):
    (tmp_path / "code" / "requirements.txt").write_text("-r more.txt\n")
    (tmp_path / "code" / "more.txt").write_text("# mine\nTensorFlow == 2.15.1  # old\n")
    job = {**function_job, "python": "", "requirements": "requirements.txt"}
    (worker,) = prepare(options(**job), directory, {}, local=True).spec.roles
    assert worker.packages.tensorflow == "2.15.1"
    assert worker.packages.requirements == ("-r requirements.txt",)


def test_a_requirements_file_that_is_not_in_the_job_is_refused(options, directory, function_job):
    job = {**function_job, "requirements": "nowhere.txt"}
    with pytest.raises(UsageError, match=r"names nowhere\.txt, and the job has no such file"):
        prepare(options(**job), directory, {}, local=False)


def test_a_tensorboard_with_a_python_of_its_own_gets_nothing(tmp_path, directory):
    document = {
        "service": {
            "job_cmd": "true",
            "use_tensorboard": True,
            "python": sys.executable,
            "requirements": ["pandas"],
        },
        "parameter_server": {"count": 0},
        "tensorboard": {"python": sys.executable},
    }
    worker, board = prepare(load(document), directory, {}, local=True).spec.roles
    assert worker.packages.are_wanted
    assert not board.packages.are_wanted


def script(tmp_path, text):
    (tmp_path / "code").mkdir(exist_ok=True)
    (tmp_path / "code" / "train.py").write_text(text)
    return {"job_url": "code", "job_name": "train"}


def with_servers(tmp_path, service, **more):
    document = {
        "service": {"name": "job", "python": sys.executable, **service},
        "parameter_server": {"count": 1},
        "worker": {"count": 1},
        **more,
    }
    (tmp_path / "options.json").write_text(json.dumps(document))
    return load(tmp_path / "options.json")


PLAIN = "import tensorflow as tf\nmodel.fit(x, epochs=2)\n"
SERVERS = "import keras, tensorflow as tf\ns = tf.distribute.ParameterServerStrategy(r)\n"


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            PLAIN,
            r"train\.py names no cluster, strategy or Server: .*parameter_server.: {.count.: 0}",
        ),
        (
            SERVERS,
            r"ParameterServerStrategy \(train\.py:2\) needs a chief: .*.chief.: {.count.: 1}",
        ),
    ],
    ids=["a plain script", "a strategy without a chief"],
)
def test_code_that_can_only_wait_in_its_tasks_is_refused(directory, tmp_path, source, why, local):
    asked = with_servers(tmp_path, script(tmp_path, source))
    with pytest.raises(UsageError, match=why):
        prepare(asked, directory, {}, local=local)


def test_a_variable_of_one_role_may_tell_the_code_what_it_is(directory, tmp_path):
    code = script(tmp_path, "import os\nROLE = os.environ['ROLE']\n")
    with pytest.raises(UsageError, match="names no cluster"):
        prepare(with_servers(tmp_path, {**code, "env": {"ROLE": "x"}}), directory, {}, local=True)
    told = with_servers(tmp_path, code, parameter_server={"count": 1, "env": {"ROLE": "ps"}})
    assert prepare(told, directory, {}, local=True).code.contract == "script"


def test_options_that_would_bring_parameter_servers_to_a_plain_script_are_refused_while_it_runs(
    directory, tmp_path
):
    code = script(tmp_path, PLAIN)
    alone = with_servers(tmp_path, code, parameter_server={"count": 0})
    running = prepare(alone, directory, {}, local=True).spec
    with pytest.raises(OptionsError, match="names no cluster, strategy or Server"):
        changed_spec(with_servers(tmp_path, code), directory, {}, running, local=True)


def test_an_update_goes_by_the_code_that_was_packed(directory, tmp_path):
    code = script(tmp_path, PLAIN)
    alone = with_servers(tmp_path, code, parameter_server={"count": 0})
    prepared = prepare(alone, directory, {}, local=True)
    archives_in_force(prepared, directory, True)
    running = prepared.spec
    script(tmp_path, "def half(edited\n")
    assert changed_spec(alone, directory, {}, running, local=True).roles == running.roles


@pytest.fixture
def moved(directory, tmp_path):
    """A job that runs on a cluster, and the same with its code elsewhere on the machine."""
    code = script(tmp_path, PLAIN)
    asked = with_servers(tmp_path, code, parameter_server={"count": 0})
    running = prepare(asked, directory, {}, local=False).spec
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "train.py").write_text("def half(edited\n")
    code = {**code, "job_url": elsewhere.as_uri()}
    return with_servers(tmp_path, code, parameter_server={"count": 0}), running


def test_code_elsewhere_on_the_machine_is_refused_while_its_scheduler_runs(moved, directory):
    asked, running = moved
    with pytest.raises(OptionsError, match="start the scheduler again with these options"):
        changed_spec(asked, directory, {}, running, local=False)


def test_a_scheduler_that_is_started_again_may_have_its_code_elsewhere_which_is_not_read_before(
    moved, directory
):
    asked, running = moved
    found = changed_spec(asked, directory, {}, running, local=False, restarted=True)
    assert found.job.uri == asked.service.job_url


def test_several_tasks_that_do_the_same_are_told(options, directory, tmp_path):
    prepared = prepare(options(**script(tmp_path, PLAIN)), directory, {}, local=True)
    assert any("each of the 2 tasks does all of the work" in note for note in prepared.notes)
    said = options(**script(tmp_path, PLAIN), strategy="independent")
    assert not any(
        "all of the work" in note for note in prepare(said, directory, {}, local=True).notes
    )


FITS = SERVERS + "model.fit(data, epochs=3)\n"


@pytest.mark.parametrize(
    ("service", "env", "told"),
    [
        ({"tensorflow_version": "2.16.1"}, {}, True),
        ({"tf_image": "tensorflow/tensorflow:2.21.0"}, {}, True),
        ({"tensorflow_version": "2.15.1"}, {}, False),
        ({"tf_image": "ours:1"}, {}, False),
        ({"tensorflow_version": "2.21.0", "legacy_keras": True}, {}, False),
        ({"tensorflow_version": "2.21.0"}, {"TF_USE_LEGACY_KERAS": "1"}, False),
    ],
)
def test_a_fit_that_keras_3_cannot_do_is_told_with_what_helps(
    directory, tmp_path, service, env, told
):
    code = script(tmp_path, FITS)
    service = {**code, "python": "", "env": env, **service}
    asked = with_servers(tmp_path, service, chief={"count": 1})
    notes = prepare(asked, directory, {}, local=False).notes
    (found,) = [n for n in notes if "Keras' fit" in n] or [""]
    assert bool(found) is told
    if told:
        assert found.startswith("train.py:3 calls Keras' fit: under ParameterServerStrategy")
        assert "set service.legacy_keras (TF_USE_LEGACY_KERAS=1;" in found


def test_the_keras_of_the_tensorflow_that_is_found_here_counts(
    directory, tmp_path, no_tensorflow_here
):
    folder = tmp_path / ".venvs" / "tensorflow-2.21.0"
    environment_with_tensorflow(folder)
    packages = folder / "lib" / "python3.11" / "site-packages"
    (packages / "tensorflow_cpu-2.21.0.dist-info").mkdir()
    (packages / "tensorflow_estimator-2.15.0.dist-info").mkdir()
    asked = with_servers(tmp_path, {**script(tmp_path, FITS), "python": ""}, chief={"count": 1})
    prepared = prepare(asked, directory, {}, local=True)
    assert set(prepared.tensorflow.values()) == {"2.21.0"}
    # Its Keras 2 is used where it is there, and installed where it is not.
    assert {role.packages.tensorflow for role in prepared.spec.roles} == {"2.21.0"}


PARSES = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args()\n"


@pytest.mark.parametrize(
    ("source", "context", "notes"),
    [
        (
            PARSES,
            {"lr": 1},
            ["lr goes to train.py as --lr (service.parameters_as_arguments: auto)"],
        ),
        (
            PARSES,
            {"lr": 1, "epochs": 7},
            [
                "lr goes to train.py as --lr",
                "train.py is not seen to read epochs: neither JOB_CONTEXT nor PARAM_EPOCHS",
            ],
        ),
        ("print('acc', 0.9)\n", {"lr": 1}, ["train.py is not seen to read lr"]),
        ("import os\nprint(os.environ['PARAM_LR'])\n", {"lr": 1}, []),
        ("import os\nprint(os.environ['PARAM_' + 'lr'.upper()])\n", {"lr": 1}, []),
        ("import json, os\nprint(json.loads(os.environ['JOB_CONTEXT']))\n", {"lr": 1}, []),
        ("import something\nsomething.train()\n", {"lr": 1}, []),
        ("def main(server, log_dir, context):\n    print(context)\n", {"lr": 1}, []),
    ],
)
def test_how_parameters_reach_the_code_is_told_and_which_it_does_not_read(
    options, tmp_path, source, context, notes
):
    given = options(**script(tmp_path, source), job_context=json.dumps(context))
    directory = WorkDirectory(tmp_path / "work").service("mnist")
    told = [n for n in prepare(given, directory, {}, local=True).notes if "job_context" in n]
    assert len(told) == len(notes)
    assert all(note in one for note, one in zip(notes, told, strict=True))
