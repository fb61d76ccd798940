"""Small packages for tests, in the form of a universe's stub repository."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]

SCHEDULER = Path(__file__).with_name("recorded_scheduler.py")

CONFIG: Json = {
    "type": "object",
    "properties": {
        "service": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "of it", "default": "tensorflow"},
                "user": {"type": "string", "description": "of it", "default": "nobody"},
                "job_name": {"type": "string", "description": "of it", "default": "mnist"},
                "answers": {"type": "string", "description": "of it", "default": ""},
                "hold": {"type": "string", "description": "of it", "default": ""},
            },
            "required": ["name"],
        },
        "worker": {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "description": "of it", "default": 2, "minimum": 0},
                "cpus": {"type": "number", "description": "of it", "default": 0.5},
                "mem": {"type": "integer", "description": "of it", "default": 512},
            },
        },
        "parameter_server": {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "description": "of it", "default": 1, "minimum": 0}
            },
        },
    },
}

_TEMPLATE = """{
  "id": "{{service.name}}",
  "cpus": 0.5, "mem": 256, "instances": 1, "user": "{{service.user}}",
  "cmd": "exec PYTHON recorded_scheduler.py",
  "fetch": [{"uri": "{{resource.assets.uris.scheduler}}"}],
  "labels": {
    "DCOS_COMMONS_API_VERSION": "v1",
    "DCOS_COMMONS_UNINSTALL": "true",
    "DCOS_PACKAGE_FRAMEWORK_NAME": "{{service.name}}",
    "DCOS_SERVICE_NAME": "{{service.name}}",
    "DCOS_SERVICE_PORT_INDEX": "0",
    "DCOS_SERVICE_SCHEME": "http",
    "MARATHON_SINGLE_INSTANCE_APP": "true"
  },
  "env": {
    {{#service.job_name}}"JOB_NAME": "{{service.job_name}}",{{/service.job_name}}
    "FRAMEWORK_NAME": "{{service.name}}",
    "WORKER_COUNT": "{{worker.count}}",
    "WORKER_CPUS": "{{worker.cpus}}",
    "PS_COUNT": "{{parameter_server.count}}",
    "HOLD": "{{service.hold}}",
    "ANSWERS": "{{service.answers}}"
  },
  "healthChecks": [{"protocol": "MESOS_HTTP", "path": "/v1/health", "gracePeriodSeconds": 60,
    "intervalSeconds": 5, "timeoutSeconds": 5, "portIndex": 0, "maxConsecutiveFailures": 0}],
  "portDefinitions": [{"port": 0, "protocol": "tcp", "name": "api",
    "labels": {"VIP_0": "/api.{{service.name}}:80"}}]
}"""
TEMPLATE = _TEMPLATE.replace("PYTHON", sys.executable)


def package(version: str, release: int, artifacts: str, **more: Any) -> Json:
    """Return one version of the package ``tensorflow``; ``artifacts`` is a URL without a slash."""
    binary = {
        "kind": "executable",
        "url": f"{artifacts}/tensorflow-cli",
        "contentHash": [{"algo": "sha256", "value": "0" * 64}],
    }
    icons = {f"icon-{size}": f"{artifacts}/icon.png" for size in ("small", "medium", "large")}
    return {
        "packagingVersion": "4.0",
        "name": "tensorflow",
        "version": version,
        "releaseVersion": release,
        "maintainer": "local@example.com",
        "description": "TensorFlow training jobs on Mesos",
        "framework": True,
        "tags": ["tensorflow", "machine-learning"],
        "minDcosReleaseVersion": "1.10",
        "lastUpdated": 1600000000,
        "preInstallNotes": "Default configuration needs 1 agent.",
        "postInstallNotes": "The service is being installed.",
        "postUninstallNotes": "The service is being uninstalled.",
        "licenses": [{"name": "Apache License Version 2.0", "url": "https://www.apache.org/"}],
        "upgradesFrom": ["*"],
        "downgradesTo": ["*"],
        "config": CONFIG,
        "marathon": {"v2AppMustacheTemplate": base64.b64encode(TEMPLATE.encode()).decode()},
        "resource": {
            "images": icons,
            "assets": {"uris": {"scheduler": SCHEDULER.as_uri()}},
            "cli": {
                "binaries": {name: {"x86-64": binary} for name in ("linux", "darwin", "windows")}
            },
        },
        **more,
    }


def repository(folder: Path, *packages: Json, name: str = "repo.json") -> str:
    """Write a repository and return its URI."""
    path = folder / name
    path.write_text(json.dumps({"packages": list(packages)}))
    return path.as_uri()
