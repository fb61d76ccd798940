"""A scheduler's API asks for a token, wherever it listens."""

import pytest

from dcos_tensorflow.deploy.scheduler_settings import with_guarded_api
from dcos_tensorflow.deploy.settings import collect

MASTER = {"master": "127.0.0.1:5050"}


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("given", [{}, {"api_host": "127.0.0.1"}, {"artifacts": "file"}])
def test_an_api_on_this_machine_asks_for_a_token_of_its_own(local, given):
    settings = collect(None, {}, {**MASTER, **given})
    tokens = [with_guarded_api(settings, local=local).secret("api_token") for _ in range(2)]
    assert len(set(tokens)) == 2
    assert all(len(token) >= 24 for token in tokens)


def test_a_token_that_was_given_stays(tmp_path):
    file = tmp_path / "token"
    file.write_text("mine\n")
    settings = collect(None, {}, {**MASTER, "api_token_file": str(file)})
    assert with_guarded_api(settings, local=True).secret("api_token") == "mine"


def test_an_open_api_has_to_be_asked_for():
    settings = collect(None, {}, {**MASTER, "api_open": True})
    assert with_guarded_api(settings, local=False).secret("api_token") == ""


def test_an_api_that_a_router_asks_has_no_token_that_could_be_read_somewhere():
    settings = collect(None, {}, {**MASTER, "api_host": "0.0.0.0", "api_from": "master.mesos"})
    assert with_guarded_api(settings, local=False).secret("api_token") == ""


def test_the_api_of_a_local_job_listens_on_this_machine_only():
    settings = collect(None, {}, {"master": "198.51.100.1:5050"})
    assert with_guarded_api(settings, local=True)["api_host"] == "127.0.0.1"
