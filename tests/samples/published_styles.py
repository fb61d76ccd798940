"""Options as users of the published beta-tensorflow package write them, in each of its styles."""

from typing import Any

ROLE = {"cpus": 1, "mem": 4096, "disk": 4096, "disk_type": "ROOT"}
PS = {**ROLE, "port": 2223}
WORKER = {**ROLE, "port": 2222}
SERVICE = {
    "job_url": "https://example.org/jobs.zip",
    "job_path": "jobs/source",
    "job_name": "demo",
    "shared_filesystem": "",
    "use_gcs_key_secret": False,
    "use_tensorboard": False,
    "user": "root",
}

#: style -> (options as the published package's users write them, the tasks they get)
STYLES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "one worker and no parameter server": (
        {
            "service": {**SERVICE, "name": "mnist", "job_context": '{"learning_rate":0.5}'},
            "gpu_worker": {**ROLE, "count": 0, "gpus": 1},
            "worker": {**WORKER, "count": 1},
            "parameter_server": {**PS, "count": 0},
            "tensorboard": {"port": 6006, "cpus": 1, "mem": 1024},
        },
        ("worker-0",),
    ),
    "one GPU worker and nothing else": (
        {
            "service": {**SERVICE, "name": "gan", "job_url": "https://example.org/gan.zip "},
            "gpu_worker": {**ROLE, "count": 1, "gpus": 1},
            "worker": {"count": 0},
            "parameter_server": {"count": 0},
        },
        ("gpu-worker-0",),
    ),
    "GPU workers with parameter servers": (
        {
            "service": {**SERVICE, "name": "slim", "shared_filesystem": "gs://bucket/slim"},
            "gpu_worker": {**ROLE, "count": 4, "gpus": 4},
            "worker": {"count": 0},
            "parameter_server": {**PS, "count": 2, "placement_constraint": "hostname:UNIQUE"},
        },
        ("ps-0", "ps-1", "gpu-worker-0", "gpu-worker-1", "gpu-worker-2", "gpu-worker-3"),
    ),
    "Kerberos, HDFS and TensorBoard": (
        {
            "service": {
                **SERVICE,
                "name": "tensorflow",
                "security": {
                    "kerberos": {
                        "enabled": True,
                        "kdc": {"hostname": "kdc.example.org", "port": 2500},
                        "primary": "tensorflow",
                        "realm": "LOCAL",
                        "keytab_secret": "__dcos_base64__tensorflow_keytab",
                    }
                },
                "hdfs": {"config_uri": "http://api.hdfs.example.org/v1/endpoints"},
                "shared_filesystem": "hdfs://default/tensorflow",
                "use_tensorboard": True,
            },
            "parameter_server": {"count": 1},
            "worker": {"count": 2},
        },
        ("ps-0", "worker-0", "worker-1", "tensorboard-0"),
    ),
    "TensorBoard on a shared filesystem": (
        {
            "service": {
                "name": "mnist-hdfs",
                "job_url": "https://example.org/jobs.zip",
                "job_name": "mnist",
                "shared_filesystem": "hdfs://name-0.example.org:9001/mnist",
                "use_tensorboard": True,
            },
            "worker": {"count": 2},
            "parameter_server": {"count": 2},
        },
        ("ps-0", "ps-1", "worker-0", "worker-1", "tensorboard-0"),
    ),
    "an empty context": (
        {
            "service": {**SERVICE, "name": "helloworld", "job_context": ""},
            "worker": {**WORKER, "count": 1},
            "parameter_server": {**PS, "count": 1},
        },
        ("ps-0", "worker-0"),
    ),
}
