"""The published package's users find their options deployed: all styles of its documentation."""

import pytest

from dcos_tensorflow.core.plans.elements import Status
from samples.published_styles import STYLES
from service_runner.expects import Expect
from service_runner.runner import ServiceRunner
from service_runner.sends import Send
from service_runner.service import agents

SIDECARS = ("tensorboard-0",)


@pytest.mark.parametrize("style", STYLES)
def test_a_style_deploys_its_tasks_where_there_is_room(runner: ServiceRunner, style: str) -> None:
    options, tasks = STYLES[style]
    runner.run(
        options,
        Send.register(),
        Send.offers(),
        Expect.launched(*tasks),
        Send.running(),
        Expect.plan("deploy", Status.COMPLETE),
        Expect.tasks(*tasks),
        cluster=agents(gpus=4),
    )


@pytest.mark.parametrize(
    "style", [name for name, (_, tasks) in STYLES.items() if "gpu-worker-0" in tasks]
)
def test_gpu_workers_wait_for_gpus_and_say_so(runner: ServiceRunner, style: str) -> None:
    runner.run(
        STYLES[style][0],
        Send.register(),
        Send.offers(),
        Expect.launched(),
        Expect.step("deploy", "gpu-worker-0", Status.PENDING, "best agent S0 offers 0"),
    )


@pytest.mark.parametrize("style", STYLES)
def test_a_style_waits_for_memory_and_says_so(runner: ServiceRunner, style: str) -> None:
    options, tasks = STYLES[style]
    waiting = next(task for task in tasks if task not in SIDECARS)
    runner.run(
        options,
        Send.register(),
        Send.offers(),
        Expect.launched(),
        Expect.declined(),
        Expect.step("deploy", waiting, Status.PENDING, "4096 MB mem"),
        cluster=agents(gpus=4, mem=4095),
    )


def test_kerberos_and_hdfs_reach_the_tasks(runner: ServiceRunner) -> None:
    options, tasks = STYLES["Kerberos, HDFS and TensorBoard"]
    runner.run(
        options,
        Send.register(),
        Send.offers(),
        Expect.launched(*tasks),
        Expect.variables(
            "worker-0",
            HDFS_ENABLED="true",
            SECURITY_KERBEROS_ENABLED="true",
            SECURITY_KERBEROS_KDC_HOSTNAME="kdc.example.org",
            SECURITY_KERBEROS_KDC_PORT="2500",
            SECURITY_KERBEROS_PRIMARY="tensorflow",
            SECURITY_KERBEROS_REALM="LOCAL",
        ),
        Expect.secrets("worker-0", SECURITY_KERBEROS_KEYTAB="__dcos_base64__tensorflow_keytab"),
        Expect.fetches(
            "worker-0",
            "http://api.hdfs.example.org/v1/endpoints/core-site.xml",
            "http://api.hdfs.example.org/v1/endpoints/hdfs-site.xml",
        ),
    )


def test_the_key_for_google_storage_reaches_the_tasks(runner: ServiceRunner) -> None:
    options, tasks = STYLES["Kerberos, HDFS and TensorBoard"]
    service = {**options["service"], "use_gcs_key_secret": True}
    runner.run(
        {**options, "service": service},
        Send.register(),
        Send.offers(),
        Expect.launched(*tasks),
        Expect.variables("worker-0", USE_GCS_KEY="true"),
        Expect.secrets("worker-0", GOOGLE_APPLICATION_CREDENTIALS="gcs_key"),
    )


def test_an_empty_context_is_an_empty_object(runner: ServiceRunner) -> None:
    options, tasks = STYLES["an empty context"]
    runner.run(
        options,
        Send.register(),
        Send.offers(),
        Expect.launched(*tasks),
        Expect.context("worker-0", "{}"),
    )
