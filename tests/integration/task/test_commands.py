"""Commands of an operator in a task: beside the user's process, in its place, within bounds."""

import os

import pytest

from dcos_tensorflow.task.report.operator_commands import WAITING_BYTES
from waiting import eventually

WAIT = "print('ready', flush=True)\nimport time\nwhile True: time.sleep(60)\n"


def running(start):
    found = start(WAIT)
    found.wait_for_text("ready")
    found.wait_for_state("running")
    return found


@pytest.fixture(scope="module")
def task(start_lasting):
    return running(start_lasting)


def asked(*words, seconds=60):
    return {"id": os.urandom(16).hex(), "command": words, "seconds": seconds}


def begun(task, *words, seconds=60):
    body = asked(*words, seconds=seconds)
    code, answer = task.request("POST", "/v1/command", body)
    assert code == 200, answer
    return body["id"]


def ended(task, identifier):
    """Return what a command has printed to each stream, and its last answer."""
    printed, after = {"stdout": "", "stderr": ""}, 0
    while True:
        path = f"/v1/command/output?id={identifier}&after={after}&wait=20"
        code, news = task.request("GET", path)
        assert code == 200, news
        for stream, text in news["output"]:
            printed[stream] += text
        after = news["next"]
        if news["exit_code"] is not None:
            return printed, news


def ran(task, *words, **more):
    return ended(task, begun(task, *words, **more))


def shell(task, text, **more):
    return ran(task, "sh", "-c", text, **more)


def test_its_output_and_its_exit_code_are_handed_through(task):
    printed, news = shell(task, "echo out; echo err >&2; exit 3")
    assert printed == {"stdout": "out\n", "stderr": "err\n"}
    assert (news["exit_code"], news["timed_out"]) == (3, False)


def test_it_runs_in_the_sandbox_as_the_user_with_the_variables_of_the_process(task):
    printed, _ = shell(task, "pwd; id -u; echo $TASK_NAME; env | grep -c ^TASK_RUNNER_TOKEN")
    expected = [str(task.sandbox), str(os.getuid()), "worker-0", "0"]
    assert printed["stdout"].splitlines() == expected


def test_a_program_that_is_not_there_ends_as_in_a_shell(task):
    printed, news = ran(task, "no-such-program")
    assert (news["exit_code"], printed["stderr"]) == (
        127,
        "no-such-program: No such file or directory\n",
    )


def test_one_that_takes_too_long_is_killed_with_all_that_it_has_started(task):
    _, news = shell(task, "sleep 600 & echo $! > child; wait", seconds=1)
    assert (news["exit_code"], news["timed_out"]) == (137, True)
    pid = task.pid_in("child")
    eventually(lambda: not os.path.exists(f"/proc/{pid}"))


def test_there_is_one_at_a_time_and_it_can_be_ended(task):
    first = begun(task, "sleep", "600")
    code, answer = task.request("POST", "/v1/command", asked("true"))
    assert (code, answer["error"]) == (409, "a command runs already: sleep")
    assert task.request("POST", f"/v1/command/end?id={first}")[0] == 200
    assert ended(task, first)[1]["exit_code"] == 137
    assert shell(task, "echo next")[0]["stdout"] == "next\n"
    assert task.request("POST", f"/v1/command/end?id={first}")[0] == 404


def test_more_than_waits_at_once_is_told_whole(task):
    lines = WAITING_BYTES // 5
    printed, news = ran(task, "seq", "-f", "%09g", str(lines))
    assert news["exit_code"] == 0
    assert printed["stdout"].count("\n") == lines


def test_the_process_of_the_user_ends_and_starts_beside_it(task):
    command = begun(task, "sh", "-c", "until test -e go; do sleep 0.05; done; echo survived")
    assert task.order(2)[0] == 200
    task.wait_for_state("running", starts=2)
    (task.sandbox / "go").touch()
    printed, news = ended(task, command)
    assert (printed["stdout"], news["exit_code"]) == ("survived\n", 0)


def test_a_request_that_is_sent_once_more_runs_nothing(task):
    body = asked("sh", "-c", "echo ran >> ran")
    assert task.request("POST", "/v1/command", body)[0] == 200
    assert ended(task, body["id"])[1]["exit_code"] == 0
    code, answer = task.request("POST", "/v1/command", body)
    assert (code, answer["error"]) == (409, "this command was run already")
    assert task.text("ran") == "ran\n"


def test_it_ends_with_the_task(start):
    task = running(start)
    begun(task, "sh", "-c", "echo $$ > command; exec sleep 600")
    pid = task.pid_in("command")
    assert task.request("POST", "/v1/stop")[0] == 202
    task.wait()
    assert not os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ([], "an object with id, command and seconds"),
        ({**asked("ls"), "id": "x"}, "32 hexadecimal digits"),
        ({**asked(), "command": "ls"}, "a list of at least one text"),
        (asked(), "a list of at least one text"),
        (asked("a\0b"), "without a zero byte"),
        (asked("ls", seconds=4000), "a number up to 3600"),
        (asked("ls", seconds="1"), "a number up to 3600"),
    ],
)
def test_nonsense_is_refused(task, body, told):
    code, answer = task.request("POST", "/v1/command", body)
    assert code == 400
    assert told in answer["error"]


def test_commands_that_end_at_once_are_told_every_one(task):
    codes = [ran(task, "sh", "-c", f"exit {number}")[1]["exit_code"] for number in range(100)]
    assert codes == list(range(100))
