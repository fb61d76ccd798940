from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dcos_tensorflow.options import OptionsError, load

FETCHED = "http, https, ftp, ftps, file, hdfs, s3, s3a, s3n, gs"
NAME = (
    "lower-case letters, digits and hyphens, in groups separated by /, at most 63 characters "
    "without the slashes"
)

#: kind of mistake -> (options, the one line they are refused with; mostly without brackets)
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a misspelt option": (
        {"worker": {"cout": 2}},
        "worker.cout: unknown option; did you mean worker.count?",
    ),
    "a misspelt group": (
        {"wroker": {"count": 2}},
        "wroker: unknown option; did you mean worker?",
    ),
    "the short name of a group": (
        {"ps": {"count": 2}},
        "ps: unknown option; did you mean parameter_server?",
    ),
    "a variable in arguments that no shell reads": (
        {"service": {"job_args": ["--lr", "${PARAM_LR}"]}},
        "service.job_args: no shell reads the arguments: the code would get $PARAM_LR as it "
        "stands here",
    ),
    "an option of another group": (
        {"service": {"addressing": "dns"}},
        "service.addressing: unknown option; did you mean cluster_spec.addressing?",
    ),
    "GPUs for a plain worker": (
        {"worker": {"gpus": 1}},
        "worker.gpus: unknown option; did you mean gpu_worker.gpus?",
    ),
    "an option that is like no other": ({"logs": {"xyzzy": 1}}, "logs.xyzzy: unknown option"),
    "a fewest count is not null": (
        {"worker": {"min_count": None}},
        "worker.min_count: must not be null; leave it out",
    ),
    "a number as text": (
        {"worker": {"count": "2"}},
        'worker.count: must be a whole number, not text; did you mean 2? (given: "2"; allowed: '
        "a whole number from 0 to 100000)",
    ),
    "a boolean as text": (
        {"service": {"use_tensorboard": "True"}},
        "service.use_tensorboard: must be true or false, not text; did you mean true? "
        '(given: "True"; allowed: true or false)',
    ),
    "text as a number": (
        {"service": {"user": 1000}},
        'service.user: must be text, not a number; did you mean "1000"? (given: 1000; '
        "allowed: text)",
    ),
    "true for a number": (
        {"worker": {"cpus": True}},
        "worker.cpus: must be a number, not true or false",
    ),
    "a list for a group": (
        {"logs": [1]},
        "logs: must be an object, not a list (given: [1]; allowed: an object with any of "
        "max_bytes, keep, uri, interval_seconds, roll_bytes, region, endpoint_url)",
    ),
    "null": ({"worker": {"mem": None}}, "worker.mem: must be a whole number, not null"),
    "null where nothing is the default": (
        {"gpu_worker": {"port": None}},
        "gpu_worker.port: must not be null; leave it out (given: null; allowed: a whole number "
        "from 1 to 65535, or 0 for any port)",
    ),
    "a negative count": ({"worker": {"count": -1}}, "worker.count: is too small"),
    "half a worker": ({"worker": {"count": 1.5}}, "worker.count: must be a whole number"),
    "two chiefs": ({"chief": {"count": 2}}, "chief.count: is too large"),
    "half a GPU": (
        {"gpu_worker": {"count": 1, "gpus": 0.5}},
        "gpu_worker.gpus: Mesos only has whole GPUs",
    ),
    "no cpus": ({"worker": {"cpus": 0}}, "worker.cpus: is too small"),
    "no disk": ({"worker": {"disk": 0}}, "worker.disk: is too small"),
    "infinitely many cpus": (
        {"worker": {"cpus": float("inf")}},
        "worker.cpus: is not a finite number (given: Infinity; allowed: a number from 0.01, the "
        "least that Mesos gives, to 100000)",
    ),
    "a port that does not exist": ({"worker": {"port": 65536}}, "worker.port: is too large"),
    "a disk type in small letters": (
        {"worker": {"disk_type": "mount"}},
        'worker.disk_type: is not a value that it can have; did you mean MOUNT? (given: "mount"; '
        "allowed: one of ROOT, MOUNT)",
    ),
    "a volume that is not directly in the sandbox": (
        {"worker": {"volume_path": "../data"}},
        "worker.volume_path: is not the name of one directory in the sandbox",
    ),
    "a strategy with a hyphen": (
        {"service": {"strategy": "multi-worker"}},
        "service.strategy: is not a value that it can have; did you mean multi_worker?",
    ),
    "no time to hold offers": ({"gang": {"hold_seconds": 0}}, "gang.hold_seconds: is too small"),
    "a name with capitals and blanks": (
        {"service": {"name": "My Job"}},
        "service.name: is not a name that DNS can carry; did you mean my-job?",
    ),
    "a name with two underscores": (
        {"service": {"name": "my__job"}},
        "service.name: must not contain two underscores in a row: they part the words of a "
        "Mesos task id; did you mean my-job?",
    ),
    "a name that DNS finds too long": (
        {"service": {"name": "team/" + "a" * 60}},
        "service.name: is 64 characters long without its slashes; DNS allows 63",
    ),
    "a name that ends in a slash": (
        {"service": {"name": "team/"}},
        "service.name: is not a name that DNS can carry; did you mean team?",
    ),
    "an empty name": ({"service": {"name": ""}}, "service.name: must not be empty"),
    "a Mesos role with a star in it": (
        {"service": {"mesos_role": "ml*"}},
        "service.mesos_role: is not a name that Mesos takes for a role: * stands alone",
    ),
    "job_context as an object": (
        {"service": {"job_context": {"a": 1}}},
        "service.job_context: must be JSON text, not an object; did you mean "
        '"{\\"a\\": 1}"? (given: {"a": 1}; allowed: JSON text of an object, or empty text)',
    ),
    "job_context that is no JSON": (
        {"service": {"job_context": "{'a': 1}"}},
        "service.job_context: the text is not JSON: Expecting property name enclosed in "
        "double quotes at line 1 column 2",
    ),
    "job_context that is a list": (
        {"service": {"job_context": "[1]"}},
        "service.job_context: must be JSON text of an object, not of a list",
    ),
    "job_context with a key twice": (
        {"service": {"job_context": '{"a": 1, "a": 2}'}},
        "service.job_context: the key a stands there more than once",
    ),
    "a file for a module": (
        {"service": {"job_name": "src/train.py"}},
        "service.job_name: is not the name of a Python module; did you mean src.train?",
    ),
    "a module with its .py": (
        {"service": {"job_name": "train.py"}},
        "service.job_name: is a file; name the module, without .py; did you mean train?",
    ),
    "a blank command": ({"service": {"job_cmd": " "}}, "service.job_cmd: is blank"),
    "an image with a blank": (
        {"service": {"tf_image": "tensorflow/tensorflow :2.15.0"}},
        "service.tf_image: is not the name of an image: it holds white space; did you mean "
        "tensorflow/tensorflow:2.15.0?",
    ),
    "a domain that is none": (
        {"cluster_spec": {"dns_domain": ".example"}},
        "cluster_spec.dns_domain: is not a domain name",
    ),
    "a network with the address of a machine": (
        {"cluster_spec": {"peer_network": "10.1.0.7/16"}},
        "cluster_spec.peer_network: is not a network: 10.1.0.7/16 has host bits set",
    ),
    "an interface that can be none": (
        {"cluster_spec": {"peer_network": "eth0 or ib0"}},
        "cluster_spec.peer_network: is not the name of an interface",
    ),
    "a network of peers that have names": (
        {"cluster_spec": {"peer_network": "ib0", "addressing": "dns"}, "worker": {"port": 2222}},
        "cluster_spec.peer_network: names have the addresses that DNS tells",
    ),
    "a network of peers in containers of their own": (
        {
            "cluster_spec": {"peer_network": "ib0"},
            "service": {"virtual_network_enabled": True, "virtual_network_name": "dcos"},
        },
        "cluster_spec.peer_network: containers have addresses of their own",
    ),
    "a path out of the sandbox": (
        {"service": {"job_path": "../secrets"}},
        "service.job_path: must stay below the sandbox: .. is not allowed",
    ),
    "a checksum that is none": (
        {"service": {"job_url": "http://host/job.zip", "job_sha256": "md5:0"}},
        "service.job_sha256: is not a SHA-256 in hexadecimal",
    ),
    "a checksum of no file": (
        {"service": {"job_url": "http://host", "job_sha256": "0" * 64}},
        "service.job_sha256: is the sum of the file that service.job_url names, and that "
        "names none",
    ),
    "a URL that nothing fetches": (
        {"service": {"job_url": "git://host/job"}},
        "service.job_url: the Mesos fetcher knows no git://",
    ),
    "a URL with a password": (
        {"service": {"job_url": "https://me:hush@host/job.zip"}},
        "service.job_url: holds a password, which would be stored and shown to everyone "
        '(given: "https://********@host/job.zip"; allowed: '
        f"a path or a URI with one of {FETCHED})",
    ),
    "URIs that are no texts": (
        {"service": {"job_uris": ["a", 3]}},
        'service.job_uris.1: must be text, not a number; did you mean "3"? (given: 3; allowed: a '
        "list of URIs, or JSON text of one)",
    ),
    "checkpoints in a relative directory": (
        {"checkpoints": {"uri": "run"}},
        "checkpoints.uri: must be an absolute path, found by all machines at the same place",
    ),
    "an environment with a number": (
        {"worker": {"env": {"STEPS": 100}}},
        'worker.env.STEPS: must be text, not a number; did you mean "100"?',
    ),
    "an environment with a bad name": (
        {"worker": {"env": {"A-B": "x"}}},
        "worker.env.A-B: is not the name of an environment variable",
    ),
    "an environment with a variable of the service": (
        {"service": {"env": {"TF_CONFIG": "{}"}}},
        "service.env.TF_CONFIG: TF_CONFIG is set by the service: it is made from the roles "
        "and their counts",
    ),
    "an environment that is a list": (
        {"worker": {"env": []}},
        "worker.env: must be an object of texts, or JSON text of one, not a list",
    ),
    "an unknown placement operator": (
        {"worker": {"placement_constraint": "rack:LIK:a"}},
        "worker.placement_constraint: rack:LIK:a: unknown operator 'LIK'; operators are "
        "UNIQUE, CLUSTER, GROUP_BY, LIKE, UNLIKE, MAX_PER, IS, IS_NOT; did you mean LIKE?",
    ),
    "a placement rule with a bad regular expression": (
        {"worker": {"placement_constraint": "rack:LIKE:a("}},
        "worker.placement_constraint: rack:LIKE:a(: not a regular expression of RE2: missing ): a(",
    ),
}


def test_an_option_is_not_near_another_for_their_groups_sake(
    problems: Callable[..., list[str]],
) -> None:
    (line,) = problems({"service": {"bogus": "x"}})
    assert "did you mean" not in line


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_refused_with_one_line_that_says_it_all(
    kind: str, problems: Callable[..., list[str]]
) -> None:
    options, told = MISTAKES[kind]
    (line,) = problems(options)
    assert line == told or line.startswith(f"{told} (")


#: rule -> (options, the one line they are refused with)
RULES: dict[str, tuple[dict[str, Any], str]] = {
    "a job is a module or a command": (
        {"service": {"job_name": "train", "job_cmd": "python3 train.py"}},
        'service.job_cmd: both service.job_name ("train") and service.job_cmd are set, and a '
        "job is one of them",
    ),
    "there is something to run": (
        {"service": {"job_name": ""}},
        "service.job_name: there is nothing to run: neither service.job_name nor "
        "service.job_cmd is set",
    ),
    "the contract command needs a command": (
        {"service": {"job_name": "train", "job_contract": "command"}},
        "service.job_contract: the contract command needs service.job_cmd",
    ),
    "the contract function needs a module": (
        {"service": {"job_cmd": "true", "job_contract": "function"}},
        "service.job_contract: the contract function needs service.job_name",
    ),
    "an evaluator has no place in a Server's cluster": (
        {
            "service": {"job_name": "train", "job_contract": "function"},
            "evaluator": {"count": 1},
        },
        "evaluator.count: an evaluator needs a script or a command, and service.job_contract "
        "is function",
    ),
    "a command cannot be run as TensorFlow 1": (
        {"service": {"job_cmd": "true", "tf1_compat": True}},
        "service.tf1_compat: works for a module in service.job_name only, not for service.job_cmd",
    ),
    "something must train": (
        {"worker": {"count": 0}},
        "worker.count: no task would train: chief.count, worker.count and gpu_worker.count "
        "are all 0",
    ),
    "parameter_server needs a chief": (
        {"service": {"strategy": "parameter_server"}, "parameter_server": {"count": 1}},
        "chief.count: service.strategy parameter_server needs a chief",
    ),
    "parameter_server needs parameter servers": (
        {
            "service": {"strategy": "parameter_server"},
            "chief": {"count": 1},
            "worker": {"count": 1},
        },
        "parameter_server.count: service.strategy parameter_server needs parameter servers",
    ),
    "parameter_server needs workers": (
        {
            "service": {"strategy": "parameter_server"},
            "chief": {"count": 1},
            "parameter_server": {"count": 1},
        },
        "worker.count: service.strategy parameter_server needs workers beside the chief",
    ),
    "parameter_server has no outcome of all workers": (
        {
            "service": {"strategy": "parameter_server", "outcome": "all_workers"},
            "parameter_server": {"count": 1},
            "chief": {"count": 1},
            "worker": {"count": 1},
        },
        "service.outcome: with service.strategy parameter_server workers never end by themselves",
    ),
    "multi_worker has no parameter servers": (
        {"service": {"strategy": "multi_worker"}, "parameter_server": {"count": 1}},
        "parameter_server.count: service.strategy multi_worker has no parameter servers",
    ),
    "who comes by default is counted": (
        {"service": {"strategy": "multi_worker"}, "parameter_server": {"cpus": 2}},
        "parameter_server.count: service.strategy multi_worker has no parameter servers (given: "
        "nothing: 2 parameter servers come by the published default; allowed: 0)",
    ),
    "no more workers are needed than are wanted": (
        {"worker": {"count": 2, "min_count": 3}},
        "worker.min_count: is more than worker.count, which is 2",
    ),
    "worker 0 decides without a chief": (
        {"worker": {"min_count": 0}},
        "worker.min_count: without a chief the job's end is that of worker-0: it cannot be "
        "done without",
    ),
    "GPU worker 0 decides where no other task trains": (
        {"worker": {"count": 0}, "gpu_worker": {"count": 2, "min_count": 0}},
        "gpu_worker.min_count: without a chief the job's end is that of gpu-worker-0: it "
        "cannot be done without",
    ),
    "a parameter server strategy keeps a worker": (
        {"parameter_server": {}, "chief": {"count": 1}, "worker": {"min_count": 0}},
        "worker.min_count: a ParameterServerStrategy cannot do without any worker beside the chief",
    ),
    "GPU workers have GPUs": (
        {"gpu_worker": {"count": 2, "gpus": 0}},
        "gpu_worker.gpus: 2 GPU workers without a GPU",
    ),
    "docker gives no GPUs": (
        {
            "service": {"containerizer": "docker", "gpu_tf_image": "tf:gpu"},
            "gpu_worker": {"count": 1},
        },
        "service.containerizer: the docker containerizer gives no GPUs, and gpu_worker.gpus is 1",
    ),
    "a command is under no strategy": (
        {"service": {"job_cmd": "true", "under_strategy": True}},
        "service.under_strategy: is for a script, and service.job_cmd says otherwise",
    ),
    "parameter servers need a chief to put a script under": (
        {"service": {"under_strategy": True}, "parameter_server": {"count": 1}},
        "service.under_strategy: trains with parameter servers by a chief and workers, and one of "
        "them is missing",
    ),
    "DNS names need ports": (
        {"cluster_spec": {"addressing": "dns"}, "worker": {"port": 0}},
        "worker.port: cluster_spec.addressing dns needs a fixed port",
    ),
    "some weight counts": (
        {"placement": {"fitness": "weighted", "weights": {"cpus": 0, "mem": 0, "gpus": 0}}},
        "placement.weights: by no weight but 0 no agent is better than another",
    ),
    "waits do not shrink": (
        {"retry": {"initial_backoff_seconds": 300}},
        "retry.max_backoff_seconds: is less than retry.initial_backoff_seconds, which is 300 "
        "(given: 120.0, the default; allowed: at least 300)",
    ),
    "Kerberos needs a realm": (
        {
            "service": {
                "security": {"kerberos": {"enabled": True, "kdc": {"hostname": "h", "port": 88}}}
            }
        },
        "service.security.kerberos.realm: is needed because service.security.kerberos.enabled "
        "is true",
    ),
    "a virtual network has a name": (
        {"service": {"virtual_network_enabled": True, "virtual_network_name": ""}},
        "service.virtual_network_name: is needed because service.virtual_network_enabled is true",
    ),
    "Mesos' API V0 is not spoken": (
        {"service": {"mesos_api_version": "V0"}},
        "service.mesos_api_version: only Mesos' HTTP API is supported",
    ),
    "Docker's engine knows no secrets": (
        {
            "service": {
                "containerizer": "docker",
                "tf_image": "tf:1",
                "use_gcs_key_secret": True,
            },
            "worker": {"secrets": [{"source": "a", "env": "A"}]},
        },
        "service.containerizer: the docker containerizer knows no secrets, and there are some "
        "in worker.secrets, service.gcs_key_secret",
    ),
    "a secret is in one place": (
        {"service": {"secrets": [{"source": "a", "env": "A", "file": "a"}]}},
        "service.secrets.0: both env and file are set, and a secret is in one of them",
    ),
    "a secret is somewhere": (
        {"service": {"secrets": [{"source": "a"}]}},
        "service.secrets.0: neither env nor file is set, and a secret is in one of them",
    ),
    "two secrets are not in one variable": (
        {"chief": {"secrets": [{"source": "a", "env": "A"}, {"source": "b", "env": "A"}]}},
        "chief.secrets.1: A is that of chief.secrets.0 too",
    ),
    "a secret does not replace what the service sets": (
        {"service": {"secrets": [{"source": "a", "env": "TF_CONFIG"}]}},
        "service.secrets.0.env: TF_CONFIG is set by the service: it is made from the roles "
        "and their counts",
    ),
    "a variable is a secret or none": (
        {"worker": {"secrets": [{"source": "a", "env": "A"}], "env": {"A": "x"}}},
        "worker.secrets.0.env: A is set in worker.env too",
    ),
    "a variable of one role is no secret of all": (
        {"service": {"secrets": [{"source": "a", "env": "A"}]}, "worker": {"env": {"A": "x"}}},
        "service.secrets.0.env: A is set in worker.env too",
    ),
    "a limit has both ends": (
        {"service": {"rlimits": [{"name": "RLIMIT_CORE", "soft": 1}]}},
        "service.rlimits.0: hard is missing: a limit has both, and neither is no limit",
    ),
    "a soft limit is not above the hard one": (
        {"worker": {"rlimits": [{"name": "RLIMIT_CORE", "soft": 2, "hard": 1}]}},
        "worker.rlimits.0: soft is 2, above hard, which is 1",
    ),
    "a limit stands there once": (
        {"worker": {"rlimits": [{"name": "RLIMIT_CORE"}, {"name": "RLIMIT_CORE"}]}},
        "worker.rlimits.1: RLIMIT_CORE is that of worker.rlimits.0 too",
    ),
}


def test_a_dollar_that_names_no_variable_of_a_task_is_a_legal_argument(
    runnable: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> None:
    arguments = ["--pattern", "^a$", "$5", "$PRICE"]
    found = load(runnable({"service": {"job_args": arguments}}))
    assert list(found.service.job_args) == arguments


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_over_several_options_is_told_with_what_breaks_it(
    rule: str, problems: Callable[..., list[str]]
) -> None:
    options, told = RULES[rule]
    (line,) = problems(options)
    assert line == told or line.startswith(f"{told} (")


def test_a_key_for_google_storage_is_refused_and_never_shown(
    problems: Callable[..., list[str]],
) -> None:
    (line,) = problems({"service": {"gcs_key": "hush"}})
    assert line.startswith("service.gcs_key: a key in the options would be stored in plain text")
    assert "hush" not in line
    assert "given: (hidden)" in line


@pytest.mark.parametrize("key", [7, ["hush"], {"private_key": "hush"}, "********"])
def test_a_key_of_the_wrong_type_is_never_shown(
    key: Any, problems: Callable[..., list[str]]
) -> None:
    (line,) = problems({"service": {"gcs_key": key}})
    assert "given: (hidden)" in line
    assert "hush" not in line


def test_a_password_in_an_environment_is_never_shown(problems: Callable[..., list[str]]) -> None:
    assert problems({"worker": {"env": {"DB_PASSWORD": 1234}}}) == [
        "worker.env.DB_PASSWORD: must be text, not a number (given: (hidden); allowed: text)"
    ]


def test_all_problems_of_a_file_are_told_at_once_and_in_its_order() -> None:
    with pytest.raises(OptionsError) as refused:
        load(
            """{
              "worker": {"cout": 1, "cpus": 0, "port": 0},
              "cluster_spec": {"addressing": "dns"},
              "service": {"strategy": "parameter_server", "user": 7}
            }""",
            published_defaults=True,
        )
    assert [problem.path for problem in refused.value.problems] == [
        "worker.cout",
        "worker.cpus",
        "worker.port",
        "service.user",
        # Not in the file: after everything that is, in the order of the reference.
        "service.job_name",
        "chief.count",
    ]


def test_a_rule_is_not_told_about_an_option_that_is_wrong_in_itself(
    problems: Callable[..., list[str]],
) -> None:
    strategy = {"service": {"strategy": "parameter_server"}, "parameter_server": {}}
    options = {**strategy, "chief": {"count": "1"}}
    (line,) = problems(options)
    assert line.startswith("chief.count: must be a whole number, not text")


def test_the_error_reads_as_a_listing_under_the_source() -> None:
    with pytest.raises(OptionsError) as refused:
        load({"service": {"job_name": "train"}, "ps": {}, "worker": {"cout": 1}})
    assert str(refused.value) == (
        "2 problems in the options:\n"
        "  ps: unknown option; did you mean parameter_server?\n"
        "  worker.cout: unknown option; did you mean worker.count?"
    )


def test_no_name_of_a_file_can_forge_a_line_or_colour_a_terminal() -> None:
    with pytest.raises(OptionsError) as refused:
        load({"service": {"job_name": "train"}, "a\n\x1b[31mb": 1})
    assert str(refused.value).splitlines()[1].startswith("  a\\n\\x1b[31mb: unknown option")


def test_thousands_of_wrong_options_are_told_only_in_part() -> None:
    with pytest.raises(OptionsError) as refused:
        load({f"option{number}": 1 for number in range(5_000)})
    assert len(refused.value.problems) < 300
