"""Finding a running scheduler."""

import os

import pytest

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.registry import Registration
from dcos_tensorflow.client.work_directory import WorkDirectory
from untrusted_input.process_table import start_time

#: Above any process id that Linux gives out (2^22).
NOBODY = 4_200_000


@pytest.fixture
def work(tmp_path):
    return WorkDirectory(tmp_path)


@pytest.fixture
def service(work):
    def make(name, pid=None):
        directory = work.service(name)
        directory.prepare()
        if pid is not None:
            registry.register(directory, Registration(name, pid, "127.0.0.1:1", token="hush"))
        return directory

    return make


def test_what_was_registered_is_found_by_others(service):
    found = registry.read(service("job", os.getpid()))
    assert (found.service, found.api, found.token) == ("job", "127.0.0.1:1", "hush")
    assert found.process_lives()


def test_only_its_owner_may_read_it(service):
    assert service("job", os.getpid()).registration.stat().st_mode & 0o777 == 0o600


def test_a_process_that_is_gone_is_seen(service):
    assert not registry.read(service("job", NOBODY)).process_lives()


def test_another_process_of_the_same_number_is_not_taken_for_it():
    began = start_time(os.getpid())
    assert Registration("job", os.getpid(), "", started=began).process_lives()
    assert not Registration("job", os.getpid(), "", started=began - 1).process_lives()


def test_only_the_own_registration_is_ended(service):
    directory = service("job", NOBODY)
    registry.unregister(directory)
    assert registry.read(directory) is not None


@pytest.mark.parametrize("content", ["", "{", "[1]", "{}", '{"pid": 1}'])
def test_a_damaged_file_is_no_registration(service, content):
    directory = service("job")
    directory.registration.write_text(content)
    assert registry.read(directory) is None


def test_a_name_that_is_not_known_is_answered_with_those_that_are(work, service):
    service("mnist")
    with pytest.raises(UsageError, match="there are mnist"):
        registry.choose(work, "minst")


def test_the_only_service_needs_no_name(work, service):
    service("mnist")
    assert registry.choose(work, None)[0] == "mnist"


def test_the_only_running_service_needs_no_name(work, service):
    service("old", NOBODY)
    service("new", os.getpid())
    assert registry.choose(work, None)[0] == "new"


def test_with_several_services_one_must_be_named(work, service):
    service("one")
    service("two")
    with pytest.raises(UsageError, match="one, two"):
        registry.choose(work, None)


def test_a_second_run_of_a_service_is_refused(service):
    directory = service("job")
    with (
        registry.only_run(directory, "job"),
        pytest.raises(CliError, match="Another run of job is under way"),
        registry.only_run(directory, "job"),
    ):
        pass


def test_a_run_may_follow_another(service):
    directory = service("job")
    for _ in range(2):
        with registry.only_run(directory, "job"):
            pass


def test_a_run_that_is_refused_leaves_no_folder_of_its_service(work):
    with registry.only_run(work.service("new"), "new"):
        assert not work.service("new").path.exists()
    assert list(work.services.iterdir()) == []


def test_a_scheduler_that_has_ended_is_still_known_but_not_asked(service):
    directory = service("job", os.getpid())
    registry.unregister(directory)
    found = registry.read(directory)
    assert (found.pid, found.token) == (0, "")
    assert not found.process_lives()
