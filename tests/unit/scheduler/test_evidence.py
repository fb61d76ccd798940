"""What an ended task's sandbox tells."""

from __future__ import annotations

import json

from dcos_tensorflow.core.model.actions import CollectEvidence
from dcos_tensorflow.scheduler.evidence import read_evidence

WANTED = CollectEvidence("mnist__worker-0__1", "S0")


class Sandbox:
    def __init__(self, **files):
        self.files = files

    def tail(self, agent_id, framework_id, task_id, name, lines=40):
        key = name.replace("-", "_").replace(".", "_")
        if key not in self.files:
            raise FileNotFoundError(name)
        return self.files[key].splitlines()[-lines:]


def test_the_runners_report_is_the_first_choice():
    report = {"summary": "no module named foo", "hint": "see service.job_name", "last_lines": ["a"]}
    found = read_evidence(Sandbox(task_exit_json=json.dumps(report), stderr="x"), "f", WANTED)
    assert found.summary == "no module named foo; see service.job_name"
    assert found.last_lines == ("a",)


def test_without_a_report_the_line_of_stderr_that_speaks_of_an_error_tells():
    stderr = "I0101 fetching\nFailed to fetch 'http://x/job.zip': 404\nbye\n"
    found = read_evidence(Sandbox(stderr=stderr), "f", WANTED)
    assert found.summary == "Failed to fetch 'http://x/job.zip': 404"


def test_a_sandbox_that_cannot_be_read_is_no_error():
    assert read_evidence(Sandbox(), "f", WANTED).summary == ""


def test_a_report_cut_in_the_middle_is_not_believed():
    assert read_evidence(Sandbox(task_exit_json='{"summ'), "f", WANTED).summary == ""
