"""A state with a secret in every place that a user or a log can put one."""

from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import Evidence, LaunchSettings, ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import JobSpec, TaskRole, Uri
from samples.states import TOKEN_KEY, a_record, a_role, a_spec, a_state, an_incident, gang

SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI-example",
    "GCS_KEY": "gcs-private-7f3a",
    "DB_PASSWORD": "hunter2-and-more",
}
URL_SECRET = "url-user:url-password"
SIGNATURE = "9f86d081884c7d65"
CONTEXT_SECRET = "context-secret-value"


def telltale() -> ServiceState:
    """Return the state, of a job whose worker has failed."""
    url = f"https://{URL_SECRET}@files.example.com/job.zip?X-Amz-Signature={SIGNATURE}&part=1"
    leak = " ".join([url, *SECRETS.values(), TOKEN_KEY])
    job = JobSpec(
        uri=url,
        name="mnist",
        command=f"train --password={SECRETS['DB_PASSWORD']} --steps=5",
        context=f'{{"apiToken": "{CONTEXT_SECRET}", "epochs": 3}}',
        extra_uris=(Uri(url),),
    )
    roles = (
        a_role(TaskRole.WORKER, 2, env={**SECRETS, "PLAIN": "visible"}),
        a_role(TaskRole.PS, 1),
    )
    records = [*gang()[:2], a_record("worker-1", TaskState.FAILED, message=leak, reason=leak)]
    report = {"summary": leak, "state": "failed", "result": {"password": "hunter2-and-more"}}
    return a_state(
        JobPhase.STOPPING,
        records,
        spec=a_spec(roles=roles, job=job),
        job={"why": leak, "incidents": (an_incident(summary=leak),)},
        misfits={"worker-0": leak},
        settings=LaunchSettings(runner=Uri(url), token_key=TOKEN_KEY),
        reports={records[2].task_id: report},
        evidence={records[2].task_id: Evidence(leak, (leak,))},
    )
