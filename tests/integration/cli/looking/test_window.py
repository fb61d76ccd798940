"""The window's process: ``open`` starts one, finds it again, and it ends when nothing needs it."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from browser_page import DESKTOP, PHONE, Page
from command_line import UNTIL_FINISH, CommandLine
from untrusted_input.process_table import start_time
from waiting import eventually

#: Nothing takes so long; a busy machine needs a part of it.
SECONDS = 60.0


@pytest.fixture
def window(command_line: CommandLine) -> Iterator[Path]:
    """The file by which the window is found; none of it runs on after the test."""
    found = command_line.home / "window.json"
    yield found
    if found.exists():
        process = json.loads(found.read_text())
        found.unlink()
        eventually(lambda: start_time(process["pid"]) != process["started"], seconds=SECONDS)


def opened(command_line: CommandLine) -> str:
    """Return the link that the command prints."""
    told = command_line("open", "--no-browser", "--json")
    assert told.code == 0, told.out
    return str(json.loads(told.out)["url"])


def test_a_browser_sees_services_after_their_end(command_line, window, job) -> None:
    assert command_line("run", str(job("echo 'step 3 loss 0.5'"))).code == 0
    with httpx.Client(follow_redirects=True) as browser:
        page = browser.get(opened(command_line))
        (told,) = browser.get(page.url.join("/services")).json()["services"]
        printed = browser.get(page.url.join("v1/pod/worker-0/files/stdout")).json()["data"]
    assert page.url.path == "/services/job/"
    assert (told["name"], told["outcome"], told["served"]) == ("job", "succeeded", False)
    assert "step 3 loss 0.5" in printed


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_person_finds_a_finished_service_in_a_browser(command_line, window, job, size) -> None:
    assert command_line("run", str(job("echo 'step 3 loss 0.5'; exit 3"))).code != 0
    link = opened(command_line)
    with Page() as page:
        page.order(
            "open", url=str(httpx.URL(link).copy_remove_param("service")), scheme="dark", **size
        )
        page.order("click", where='a[href="services/job/"]')
        page.see("header .link", "as it ended")
        page.see(".failure", "failed")
        page.order("evaluate", script="location.reload()")
        page.see("header .link", "as it ended")
        overflow, unseen = page.order("overflow"), page.order("violations")
        complaints = page.order("complaints")
        page.order("open", url=link, scheme="light", **size)
        page.see("body", "its link works once")

    assert (overflow, unseen, complaints) == (0, [], [])


def test_a_person_reads_what_a_trial_has_printed_after_its_end(command_line, window, job) -> None:
    search = {
        "parameters": {"rate": [0.25, 0.5]},
        "objective": {"metric": "loss"},
        "method": "grid",
    }
    options = job('echo "step 3 loss $PARAM_RATE"')
    document = json.loads(options.read_text()) | {"sweep": search}
    options.write_text(json.dumps(document))
    assert command_line("run", str(options)).code == 0
    with Page() as page:
        link = f"{opened(command_line)}#/trials"
        page.order("open", url=link, scheme="dark", **PHONE)
        page.order("click", where='a[href="#/trials/1"]')
        page.see("main .log", "step 3 loss 0.")
        seen = page.order("overflow"), page.order("violations"), page.order("complaints")
    assert seen == (0, [], [])


def test_a_person_sees_the_queue_and_cancels_a_job_in_a_browser(
    command_line, window, job, tmp_path
) -> None:
    assert command_line("local", "up", "--cpus", "1", "--mem", "1000", "--gpus", "0").code == 0
    (tmp_path / "teams.json").write_text('{"teams": {"red": {"guarantee": 0.5}, "blue": {}}}')
    queue = command_line.start("queue", "serve", tmp_path / "teams.json")
    eventually(lambda: command_line.ask("queue", "--json").code == 0, seconds=SECONDS)
    try:
        options = job(UNTIL_FINISH)
        for name, team in (("first", "red"), ("second", "blue")):
            # With its scheduler's 0.1 it takes the whole machine.
            cpus = "worker.cpus=0.9"
            submitted = command_line.ask(
                *("submit", options, "--team", team, "--set", f"service.name={name}", "--set", cpus)
            )
            assert submitted.code == 0, submitted.out
        with Page() as page:
            link = httpx.URL(opened(command_line)).copy_remove_param("service")
            page.order("open", url=str(link), scheme="light", **PHONE)
            page.order("click", where='a[href="queue/"]')
            page.see("main", "red has 100 %")
            page.see("table", "no machine has that free")
            page.order("click", where='button[aria-label="cancel second"]')
            page.order("click", where="dialog .primary")
            page.see("main", "0 jobs wait")
            seen = page.order("overflow"), page.order("violations"), page.order("complaints")
        assert seen == (0, [], [])
    finally:
        command_line.ask("cancel", "first")
        queue.terminate()
        queue.communicate(timeout=SECONDS)
        command_line("local", "down", "--yes")


def test_a_person_says_the_token_of_a_window_of_many_once(command_line, job, tmp_path) -> None:
    assert command_line("run", str(job("true"))).code == 0
    token = tmp_path / "token"
    token.write_text("the-operator-s-token")
    token.chmod(0o600)
    flags = ("--api-port", "0", "--api-token-file", token)
    # The page first: where there is no browser the test is skipped, and leaves no process.
    with Page() as page:
        serving = command_line.start("dashboard", "serve", *flags)
        try:
            address = serving.stdout.readline().split()[-1].rstrip(".")
            page.order("open", url=f"{address}/services/job/", scheme="dark", **PHONE)
            said = (("wrong", "This is not the token."), (token.read_text(), "as it ended"))
            for text, seen in said:
                page.order("fill", where="#token", text=text)
                page.order("click", where="button")
                page.see("body", seen)
            page.order("evaluate", script="location.reload()")
            page.see("header .link", "as it ended")
            seen = page.order("overflow"), page.order("violations")
        finally:
            serving.terminate()
            serving.communicate(timeout=SECONDS)
    assert (seen, serving.returncode) == ((0, []), 0)


def test_one_window_serves_all_that_open(command_line, window) -> None:
    first, second = (httpx.URL(opened(command_line)) for _ in range(2))
    assert first.port == second.port


def test_a_window_that_was_killed_is_started_again(command_line, window) -> None:
    opened(command_line)
    killed = json.loads(window.read_text())
    os.kill(killed["pid"], signal.SIGKILL)
    eventually(lambda: start_time(killed["pid"]) != killed["started"], seconds=SECONDS)
    assert httpx.get(opened(command_line)).status_code == 303


def test_a_window_ends_when_its_file_is_gone(command_line, window) -> None:
    opened(command_line)
    process = json.loads(window.read_text())
    window.unlink()
    eventually(lambda: start_time(process["pid"]) != process["started"], seconds=SECONDS)
