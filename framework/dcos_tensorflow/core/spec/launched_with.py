"""Which options a container is launched with: the one place where that is said, field by field.

``ServiceSpec.fingerprints`` asks it once for each spec, and ``core.restarts.launch_options`` mixes
the options of two specs by it. A changed field that containers are launched with restarts them; any
other holds from the next placement or failure on. Types are named by their names, because
``core.spec.service_spec`` imports this. Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Fields:
    """How the fields of a type count.

    ``launch`` is in every fingerprint. ``launch_if_set`` is in it unless it has its default: those
    fields came later, and what had been launched before must stay as it was. So a new field never
    goes into ``launch``. No container is launched with ``never``.
    """

    launch: str = ""
    launch_if_set: str = ""
    never: str = ""

    def of_launch(self) -> frozenset[str]:
        """Return the names of the fields that a container is launched with."""
        return frozenset(f"{self.launch} {self.launch_if_set}".split())


#: By the name of the type: every field of every type that a ServiceSpec is made of.
DECLARED: Mapping[str, Fields] = {
    "ServiceSpec": Fields(
        launch="job user strategy addressing dns_domain log_max_bytes log_keep",
        launch_if_set="network peer_network storage kill_grace_seconds stall_seconds"
        " freeze_seconds",
        # Of the roles, each has its own.
        never="name roles mesos_role principal outcome outcome_grace_seconds gang retry"
        " idle_seconds replace_after_seconds maintenance_lead_seconds leave_on_rebalance"
        " update_strategy uninstall_give_up_seconds region failover_timeout_seconds units placement"
        # What a unit is its start is told, not its container.
        " workload capacity tracking",
    ),
    "RoleSpec": Fields(
        launch="role resources port env container python disk_type",
        launch_if_set="volume user secrets rlimits shm_size sandbox_env packages data_service",
        # They decide about places and retries.
        never="count min_count constraints retry_limit outlives_job",
    ),
    "JobSpec": Fields(
        launch="uri path name command contract context tf1_compat legacy_keras shared_filesystem"
        " checkpoint_dir extra_uris",
        launch_if_set="arguments parameters_as_arguments links sha256 under_strategy",
    ),
    # Where it is kept makes no other packages.
    "PackagesSpec": Fields(launch="requirements tensorflow", never="directory"),
    "LinkedData": Fields(launch="source path"),
    "Uri": Fields(launch="value extract executable cache output_file"),
    "Resources": Fields(launch="cpus mem disk gpus"),
    "Container": Fields(launch="image containerizer force_pull", launch_if_set="host_directories"),
    "VolumeSpec": Fields(launch="size path kind"),
    # Where an option stands is no part of what it says.
    "TaskSecret": Fields(launch="source env file", never="option"),
    "ResourceLimit": Fields(launch="name soft hard"),
    "VirtualNetwork": Fields(launch="name labels addresses"),
    "StorageSpec": Fields(
        launch="checkpoints summaries_uri data data_cache logs s3", launch_if_set="shards_uri"
    ),
    "CheckpointSpec": Fields(launch="uri initial_uri interval_seconds keep"),
    "DataSpec": Fields(launch="uri path"),
    "DataCacheSpec": Fields(launch="directory max_bytes"),
    "LogShippingSpec": Fields(launch="uri interval_seconds roll_bytes region endpoint_url"),
    "S3Spec": Fields(launch="endpoint_url region path_style ca_file credentials"),
    "CredentialsReference": Fields(launch="env file profile", launch_if_set="secret"),
}


def fingerprint_of(service: Any, role: Any) -> str:
    """Return what stands for all of a ServiceSpec that a container of this RoleSpec starts with.

    It is kept with every task, so that it must never become another one for the same options.
    """
    plain = {**_plain(service), "role": _plain(role)}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        declared = DECLARED[type(value).__name__]
        always, if_set = declared.launch.split(), declared.launch_if_set.split()
        return {
            f.name: _plain(found)
            for f in fields(value)
            for found in [getattr(value, f.name)]
            if f.name in always or (f.name in if_set and found != _default(f))
        }
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        # 64 MB and 64.0 MB are the same, as ``configuration_id`` has it.
        return float(value)
    return value


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
