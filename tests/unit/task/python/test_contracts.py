"""How the user's code is found, and which of the ways to bring code it is."""

from pathlib import Path

import pytest

from dcos_tensorflow.job_code.agreement import Tasks
from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.task.python.contracts import find_contract, parse_context, tasks_of
from dcos_tensorflow.task.spec import JobCode, RunnerSpec, TaskCluster

MAIN = "def main(server, log_dir, context):\n    pass\n"


@pytest.fixture
def sandbox(tmp_path):
    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(path.name + ".py").write_text(text)
        return str(tmp_path)

    return write


@pytest.mark.parametrize(
    ("source", "contract"),
    [
        (MAIN, "function"),
        ("def main(*arguments): pass", "function"),
        ("def main(server, log_dir, context, extra=None): pass", "function"),
        ("def main(s, l, c, *, k=1): pass", "function"),
        ("if True:\n    def main(s, l, c): pass", "function"),
        ("try:\n    import x\nexcept ImportError:\n    pass\nmain = lambda s, l, c: 0", "function"),
        ("def main(_): pass", "script"),
        ("def main(): pass", "script"),
        ("def main(a, b, c, d): pass", "script"),
        ("def main(s, l, c, *, k): pass", "script"),
        ("class A:\n    def main(self, l, c): pass", "script"),
        ("print('trains')", "script"),
        ("raise SystemExit('importing me is a mistake')", "script"),
    ],
)
def test_a_main_that_takes_three_arguments_makes_the_function_contract(sandbox, source, contract):
    assert find_contract(JobCode(name="job"), sandbox(job=source)).contract == contract


@pytest.mark.parametrize(
    ("source", "contract"),
    [
        ("def main(shard, context): pass", "shards"),
        ("def main(shard, context, extra=None): pass", "shards"),
        ("main = lambda shard, context: 0", "shards"),
        ("def main(shard, context, extra): pass", "script"),
        ("def main(shard, context, *, k): pass", "script"),
        ("def main(part, context): pass", "script"),
        ("def main(shard): pass", "script"),
    ],
)
def test_a_main_that_takes_shard_and_context_by_name_is_called_with_shards(
    sandbox, source, contract
):
    assert find_contract(JobCode(name="job"), sandbox(job=source)).contract == contract


THREE = "def main(data_dir, model_dir, epochs):\n    pass\n"
GUARD = 'if __name__ == "__main__":\n    '


@pytest.mark.parametrize(
    "source",
    [
        THREE + GUARD + 'main("/tmp", ".", 3)',
        THREE + "main(1, 2, 3)",
        THREE + GUARD + "import sys; sys.exit(main(*sys.argv[1:4]))",
        THREE + GUARD + "import fire; fire.Fire(main)",
        THREE + GUARD + "import fire; fire.Fire()",
        THREE + GUARD + "from absl import app; app.run(main)",
        THREE + GUARD + "tf.compat.v1.app.run()",
        THREE + GUARD + "typer.run(function=main)",
        "def cli():\n    run()\ndef run():\n    main(1, 2, 3)\n" + THREE + GUARD + "cli()",
        "def cli():\n    return cli() or main(1, 2, 3)\n" + THREE + "with x:\n    cli()",
        "main = lambda a, b, c: 0\nmain(1, 2, 3)",
        "@click.command()\n@click.option('--lr')\n" + THREE + GUARD + "main()",
        "@hydra.main(config_path='conf')\ndef main(cfg, a=1, b=2): pass",
        "def main(args=None, config=None, logger=None): pass",
        "from other import main\n" + GUARD + "main(1, 2, 3)",
    ],
)
def test_a_file_that_shows_its_own_use_of_main_is_a_script(sandbox, source):
    found = find_contract(JobCode(name="job"), sandbox(job=source, other=THREE))
    assert found.contract == "script"
    assert "service.job_contract function changes that" in found.guess


@pytest.mark.parametrize(
    "source",
    [
        THREE,
        "def helper():\n    main(1, 2, 3)\n" + THREE,
        "class Trainer:\n    def run(self): main(1, 2, 3)\n" + THREE,
        THREE + GUARD + "print('call me with a server')",
    ],
)
def test_a_main_of_three_that_the_file_does_not_call_is_called_and_the_guess_is_told(
    sandbox, source
):
    found = find_contract(JobCode(name="job"), sandbox(job=source))
    assert found.contract == "function"
    assert found.guess == (
        "job.py is called with a server, as main(server, log_dir, context), because its main takes"
        " three arguments; service.job_contract script changes that."
    )


@pytest.mark.parametrize("more", ["", GUARD + "main(local(), '/tmp', {})"])
def test_a_main_with_the_names_of_the_contract_is_no_guess(sandbox, more):
    found = find_contract(JobCode(name="job"), sandbox(job=MAIN + more))
    assert (found.contract, found.guess) == ("function", "")


def test_a_decorated_main_with_the_names_of_the_contract_is_called_with_a_server(sandbox):
    assert (
        find_contract(JobCode(name="job"), sandbox(job="@traced\n" + MAIN)).contract == "function"
    )


def test_the_line_of_the_guess_names_the_place_of_the_call(sandbox):
    found = find_contract(JobCode(name="job"), sandbox(job=THREE + GUARD + "main(1, 2, 3)"))
    assert found.guess == (
        "job.py is run as a script, because it calls its own main (line 4);"
        " service.job_contract function changes that."
    )


def test_the_option_decides_about_a_file_that_calls_its_own_main(sandbox):
    job = JobCode(name="job", contract="function")
    found = find_contract(job, sandbox(job=THREE + GUARD + "main(1, 2, 3)"))
    assert (found.contract, found.guess) == ("function", "")


def test_a_package_with_a_program_of_its_own_is_a_script(sandbox):
    root = Path(sandbox(pack__placeholder=""))
    (root / "pack" / "__init__.py").write_text(THREE)
    (root / "pack" / "__main__.py").write_text("from pack import main\nmain(1, 2, 3)\n")
    assert find_contract(JobCode(name="pack"), str(root)).contract == "script"


def test_a_function_that_is_asked_for_may_take_shards(sandbox):
    job = JobCode(name="job", contract="function")
    root = sandbox(job="def main(shard, context): pass")
    assert find_contract(job, root).contract == "shards"


def test_a_main_that_is_imported_from_the_job_is_followed(sandbox):
    root = sandbox(job="from other import main", other=MAIN)
    assert find_contract(JobCode(name="job"), root).contract == "function"


def test_a_function_is_refused_for_an_evaluator(sandbox):
    with pytest.raises(JobUnusable, match="An evaluator cannot run main") as refused:
        find_contract(JobCode(name="job"), sandbox(job=MAIN), "evaluator")
    assert "a script or a command" in refused.value.hint


@pytest.mark.parametrize("job", [JobCode(name="job", contract="script"), JobCode(command="echo")])
def test_an_evaluator_may_be_a_script_or_a_command(sandbox, job):
    assert find_contract(job, sandbox(job=MAIN), "evaluator").contract != "function"


def test_a_command_comes_before_a_module(sandbox):
    found = find_contract(JobCode(name="job", command="echo"), sandbox(job=MAIN))
    assert (found.contract, found.command) == ("command", "echo")


@pytest.mark.parametrize("name", ["job", "job.py", " job "])
def test_the_name_may_carry_its_extension(sandbox, name):
    root = sandbox(job=MAIN)
    assert find_contract(JobCode(name=name), root).module.file == f"{root}/job.py"


@pytest.mark.parametrize("name", ["pack.train", "pack/train.py"])
def test_a_module_of_a_package_is_found(sandbox, name):
    found = find_contract(JobCode(name=name), sandbox(pack____init__="", pack__train=MAIN))
    assert found.module.name == "pack.train"


def test_the_jobs_path_comes_before_the_sandbox(sandbox):
    root = sandbox(job="", src__job=MAIN)
    found = find_contract(JobCode(name="job", path="src"), root)
    assert found.contract == "function"
    assert found.python_path == (f"{root}/src", root)


def test_the_sandbox_itself_is_searched_when_the_path_has_no_such_module(sandbox):
    root = sandbox(job=MAIN, src__other="")
    assert find_contract(JobCode(name="job", path="src"), root).module.root == root


def test_an_archive_that_unpacked_into_its_own_directory_is_searched(sandbox):
    root = sandbox(mnist_master__src__job=MAIN)
    found = find_contract(JobCode(name="job"), root)
    assert found.module.root == found.python_path[0] == f"{root}/mnist_master/src"


def test_a_module_that_is_there_twice_is_refused(sandbox):
    with pytest.raises(JobUnusable, match=r"more than once: a/job\.py, b/job\.py") as error:
        find_contract(JobCode(name="job"), sandbox(a__job=MAIN, b__job=MAIN))
    assert "service.job_path" in error.value.hint


def test_a_module_that_is_missing_is_refused_with_the_nearest_names(sandbox):
    with pytest.raises(JobUnusable, match="no module 'digts'") as error:
        find_contract(JobCode(name="digts"), sandbox(digits=MAIN, other=""))
    assert error.value.hint == "did you mean digits?"


def test_a_path_that_is_missing_is_refused(sandbox):
    with pytest.raises(JobUnusable, match=r"service\.job_path is 'sorce'") as error:
        find_contract(JobCode(name="job", path="sorce"), sandbox(source__job=MAIN))
    assert "source" in error.value.hint


def test_a_job_without_name_and_command_is_refused(sandbox):
    with pytest.raises(JobUnusable, match="nothing to run"):
        find_contract(JobCode(), sandbox())


def test_the_function_contract_is_refused_where_there_is_no_such_main(sandbox):
    with pytest.raises(JobUnusable, match=r"job\.py has no main\(server, log_dir, context\)"):
        find_contract(JobCode(name="job", contract="function"), sandbox(job="def main(): pass"))


def test_the_script_contract_can_be_asked_for(sandbox):
    assert (
        find_contract(JobCode(name="job", contract="script"), sandbox(job=MAIN)).contract
        == "script"
    )


def test_a_file_that_is_no_python_is_refused_with_its_line(sandbox):
    with pytest.raises(JobUnusable, match=r"job\.py, line 2 is not Python"):
        find_contract(JobCode(name="job"), sandbox(job="x = 1\ndef (:\n"))


def test_a_function_whose_context_is_no_json_is_refused(sandbox):
    with pytest.raises(JobUnusable, match=r"service\.job_context is not JSON"):
        find_contract(JobCode(name="job", context="{steps: 5}"), sandbox(job=MAIN))


def test_a_script_reads_its_context_itself(sandbox):
    found = find_contract(JobCode(name="job", context="{steps: 5}"), sandbox(job=""))
    assert found.contract == "script"


def test_an_empty_context_is_an_empty_object():
    assert parse_context("") == {}


def test_tensorboard_needs_no_job(sandbox):
    assert find_contract(JobCode(contract="tensorboard"), sandbox()).contract == "tensorboard"


@pytest.mark.parametrize(
    ("cluster", "tasks"),
    [
        (None, Tasks(variables=frozenset({"SEED"}))),
        (
            {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]},
            Tasks(servers=1, chiefs=1, workers=2, variables=frozenset({"SEED"})),
        ),
    ],
)
def test_the_tasks_of_a_job_are_those_of_its_cluster(cluster, tasks):
    config = None if cluster is None else {"cluster": cluster, "task": {"type": "ps", "index": 0}}
    spec = RunnerSpec("mnist", "ps-0", TaskCluster(1, tf_config=config), JobCode(), role="ps")
    assert tasks_of(spec, {"SEED": "1"}) == tasks


def test_an_evaluator_is_one_of_the_tasks_that_run_the_code():
    spec = RunnerSpec("mnist", "evaluator-0", TaskCluster(1), JobCode(), role="evaluator")
    assert tasks_of(spec, ()).evaluators == 1


def test_a_module_that_nests_too_deep_is_named(sandbox):
    with pytest.raises(JobUnusable, match=r"job\.py is nested too deep to be read"):
        find_contract(JobCode(name="job"), sandbox(job="x = " + "-" * 20_000 + "1"))


def test_a_module_in_another_encoding_than_it_says_is_named(sandbox):
    root = sandbox(job="")
    (Path(root) / "job.py").write_bytes(b"x = '\xe9'\n")
    with pytest.raises(JobUnusable, match=r"job\.py.* is not Python: .*utf-8"):
        find_contract(JobCode(name="job"), root)


def test_a_notebook_is_told_how_to_become_a_script(sandbox):
    with pytest.raises(JobUnusable, match="a notebook cannot be run") as error:
        find_contract(JobCode(name="work/train.ipynb"), sandbox(job=""))
    assert error.value.hint.endswith("jupyter nbconvert --to script train.ipynb")
