"""From JSON to a scheduler call, as Mesos' JSON-to-protobuf conversion does it.

``convert`` checks as protobuf does: required fields, kinds of values, base64. As in Mesos
(stout ``protobuf.hpp``), unknown fields and unknown values of optional enums are ignored, null
means unset, and a number may be written as a string. Called by ``master`` for every call.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

Json = dict[str, Any]


class ConversionError(ValueError):
    """The JSON is no such message. The text is Mesos' own."""


_CALLS = (
    "SUBSCRIBE TEARDOWN ACCEPT DECLINE ACCEPT_INVERSE_OFFERS DECLINE_INVERSE_OFFERS REVIVE KILL "
    "SHUTDOWN ACKNOWLEDGE ACKNOWLEDGE_OPERATION_STATUS RECONCILE RECONCILE_OPERATIONS MESSAGE "
    "REQUEST SUPPRESS UPDATE_FRAMEWORK"
)
_OPERATIONS = (
    "LAUNCH LAUNCH_GROUP RESERVE UNRESERVE CREATE DESTROY GROW_VOLUME SHRINK_VOLUME CREATE_DISK "
    "DESTROY_DISK"
)
_CAPABILITIES = (
    "REVOCABLE_RESOURCES TASK_KILLING_STATE GPU_RESOURCES SHARED_RESOURCES PARTITION_AWARE "
    "MULTI_ROLE RESERVATION_REFINEMENT REGION_AWARE"
)
_ENUMS = {
    "CallType": frozenset(_CALLS.split()),
    "OperationType": frozenset(_OPERATIONS.split()),
    "CapabilityType": frozenset(_CAPABILITIES.split()),
    "ValueType": frozenset({"SCALAR", "RANGES", "SET", "TEXT"}),
    "CheckType": frozenset({"COMMAND", "HTTP", "TCP"}),
    "ContainerType": frozenset({"DOCKER", "MESOS"}),
    "ExecutorType": frozenset({"DEFAULT", "CUSTOM"}),
    "VariableType": frozenset({"VALUE", "SECRET"}),
    "SecretType": frozenset({"REFERENCE", "VALUE"}),
    "Visibility": frozenset({"FRAMEWORK", "CLUSTER", "EXTERNAL"}),
    "VolumeMode": frozenset({"RW", "RO"}),
    "ReservationType": frozenset({"STATIC", "DYNAMIC"}),
    "DiskSourceType": frozenset({"UNKNOWN", "PATH", "MOUNT", "BLOCK", "RAW"}),
}

# Field -> "<type><!: required><*: repeated>". Types with a capital are messages or enums below.
# Facts: mesos/v1/mesos.proto and mesos/v1/scheduler/scheduler.proto of 1.12.
_MESSAGES: dict[str, dict[str, str]] = {
    "Call": {
        "framework_id": "ID",
        "type": "CallType",
        "subscribe": "Subscribe",
        "accept": "Accept",
        "decline": "Decline",
        "accept_inverse_offers": "InverseOffers",
        "decline_inverse_offers": "InverseOffers",
        "revive": "Roles",
        "suppress": "Roles",
        "kill": "Kill",
        "shutdown": "Shutdown",
        "acknowledge": "Acknowledge",
        "acknowledge_operation_status": "AcknowledgeOperationStatus",
        "reconcile": "Reconcile",
        "message": "Message",
        "update_framework": "Subscribe",
    },
    "ID": {"value": "string!"},
    "Subscribe": {"framework_info": "FrameworkInfo!", "suppressed_roles": "string*"},
    "FrameworkInfo": {
        "user": "string!",
        "name": "string!",
        "id": "ID",
        "failover_timeout": "double",
        "checkpoint": "bool",
        "role": "string",
        "roles": "string*",
        "hostname": "string",
        "principal": "string",
        "webui_url": "string",
        "capabilities": "Capability*",
        "labels": "Labels",
    },
    "Capability": {"type": "CapabilityType"},
    "Labels": {"labels": "Label*"},
    "Label": {"key": "string!", "value": "string"},
    "Accept": {"offer_ids": "ID*", "operations": "Operation*", "filters": "Filters"},
    "Decline": {"offer_ids": "ID*", "filters": "Filters"},
    "InverseOffers": {"inverse_offer_ids": "ID*", "filters": "Filters"},
    "Filters": {"refuse_seconds": "double"},
    "Roles": {"role": "string", "roles": "string*"},
    "Kill": {"task_id": "ID!", "agent_id": "ID", "kill_policy": "KillPolicy"},
    "KillPolicy": {"grace_period": "Duration"},
    "Duration": {"nanoseconds": "int!"},
    "Shutdown": {"executor_id": "ID!", "agent_id": "ID!"},
    "Acknowledge": {"agent_id": "ID!", "task_id": "ID!", "uuid": "bytes!"},
    "AcknowledgeOperationStatus": {
        "agent_id": "ID",
        "resource_provider_id": "ID",
        "uuid": "bytes!",
        "operation_id": "ID!",
    },
    "Reconcile": {"tasks": "ReconcileTask*"},
    "ReconcileTask": {"task_id": "ID!", "agent_id": "ID"},
    "Message": {"agent_id": "ID!", "executor_id": "ID!", "data": "bytes!"},
    "Operation": {
        "type": "OperationType",
        "id": "ID",
        "launch": "Launch",
        "launch_group": "LaunchGroup",
        "reserve": "ResourceList",
        "unreserve": "ResourceList",
        "create": "VolumeList",
        "destroy": "VolumeList",
    },
    "ResourceList": {"resources": "Resource*"},
    "VolumeList": {"volumes": "Resource*"},
    "Launch": {"task_infos": "TaskInfo*"},
    "LaunchGroup": {"executor": "ExecutorInfo!", "task_group": "TaskGroup!"},
    "TaskGroup": {"tasks": "TaskInfo*"},
    "ExecutorInfo": {
        "executor_id": "ID!",
        "type": "ExecutorType",
        "framework_id": "ID",
        "command": "CommandInfo",
        "container": "ContainerInfo",
        "resources": "Resource*",
        "name": "string",
        "source": "string",
        "labels": "Labels",
    },
    "TaskInfo": {
        "name": "string!",
        "task_id": "ID!",
        "agent_id": "ID!",
        "resources": "Resource*",
        "executor": "ExecutorInfo",
        "command": "CommandInfo",
        "container": "ContainerInfo",
        "health_check": "HealthCheck",
        "check": "Check",
        "kill_policy": "KillPolicy",
        "data": "bytes",
        "labels": "Labels",
        "discovery": "DiscoveryInfo",
        "max_completion_time": "Duration",
    },
    "Resource": {
        "name": "string!",
        "type": "ValueType!",
        "scalar": "Scalar",
        "ranges": "Ranges",
        "role": "string",
        "allocation_info": "AllocationInfo",
        "reservations": "Reservation*",
        "reservation": "OldReservation",
        "disk": "DiskInfo",
    },
    "Scalar": {"value": "double!"},
    "Ranges": {"range": "Range*"},
    "Range": {"begin": "int!", "end": "int!"},
    "AllocationInfo": {"role": "string"},
    "Reservation": {
        "type": "ReservationType",
        "role": "string",
        "principal": "string",
        "labels": "Labels",
    },
    "OldReservation": {"principal": "string", "labels": "Labels"},
    "DiskInfo": {"persistence": "Persistence", "volume": "Volume", "source": "DiskSource"},
    "DiskSource": {"type": "DiskSourceType!", "mount": "DiskMount"},
    "DiskMount": {"root": "string"},
    "Persistence": {"id": "string!", "principal": "string"},
    "Volume": {
        "mode": "VolumeMode!",
        "container_path": "string!",
        "host_path": "string",
        "source": "VolumeSource",
    },
    "VolumeSource": {"type": "string", "secret": "Secret"},
    "CommandInfo": {
        "value": "string",
        "shell": "bool",
        "arguments": "string*",
        "uris": "URI*",
        "environment": "Environment",
        "user": "string",
    },
    "URI": {
        "value": "string!",
        "executable": "bool",
        "extract": "bool",
        "cache": "bool",
        "output_file": "string",
    },
    "Environment": {"variables": "Variable*"},
    "Variable": {
        "name": "string!",
        "type": "VariableType",
        "value": "string",
        "secret": "Secret",
    },
    "Secret": {"type": "SecretType", "reference": "SecretReference", "value": "SecretValue"},
    "SecretReference": {"name": "string!", "key": "string"},
    "SecretValue": {"data": "bytes!"},
    "ContainerInfo": {
        "type": "ContainerType!",
        "volumes": "Volume*",
        "hostname": "string",
        "rlimit_info": "RLimitInfo",
    },
    "RLimitInfo": {"rlimits": "RLimit*"},
    "RLimit": {"type": "string", "hard": "int", "soft": "int"},
    "HealthCheck": {
        "type": "CheckType",
        "command": "CommandInfo",
        "http": "HttpCheck",
        "tcp": "TcpCheck",
        "delay_seconds": "double",
        "interval_seconds": "double",
        "timeout_seconds": "double",
        "consecutive_failures": "int",
        "grace_period_seconds": "double",
    },
    "Check": {
        "type": "CheckType",
        "command": "CheckCommand",
        "http": "HttpCheck",
        "tcp": "TcpCheck",
        "delay_seconds": "double",
        "interval_seconds": "double",
        "timeout_seconds": "double",
    },
    "CheckCommand": {"command": "CommandInfo!"},
    "HttpCheck": {"port": "int!", "path": "string", "scheme": "string"},
    "TcpCheck": {"port": "int!"},
    "DiscoveryInfo": {"visibility": "Visibility!", "name": "string", "ports": "Ports"},
    "Ports": {"ports": "Port*"},
    "Port": {"number": "int!", "name": "string", "protocol": "string"},
}


def convert(value: object, message: str = "Call") -> Json:
    """Return ``value`` as a message of this name. Raises ConversionError in Mesos' words."""
    missing: list[str] = []
    found = _message(value, message, "", missing)
    if missing:
        raise ConversionError("Missing required fields: " + ", ".join(missing))
    return found


def _message(value: object, message: str, path: str, missing: list[str]) -> Json:
    if not isinstance(value, dict):
        raise ConversionError(f"Expecting a JSON object for field '{path.rpartition('.')[2]}'")
    fields = _MESSAGES[message]
    found: Json = {k: v for k, v in value.items() if k not in fields and v is not None}
    for name, spec in fields.items():
        where = f"{path}.{name}" if path else name
        given = value.get(name)
        if given is None:
            if spec.endswith("!"):
                missing.append(where)
            continue
        kind = spec.rstrip("!*")
        if spec.endswith("*"):
            if not isinstance(given, list):
                raise ConversionError(f"Not expecting a JSON {_kind(given)} for field '{name}'")
            items = [
                _value(one, kind, name, f"{where}[{index}]", missing)
                for index, one in enumerate(given)
            ]
            found[name] = [one for one in items if one is not None]
            continue
        one = _value(given, kind, name, where, missing)
        if one is not None:
            found[name] = one
        elif spec.endswith("!"):
            missing.append(where)
    return found


def _value(given: object, kind: str, name: str, path: str, missing: list[str]) -> Any:
    if kind in _MESSAGES:
        return _message(given, kind, path, missing)
    if kind in _ENUMS:
        return given if given in _ENUMS[kind] else None
    if isinstance(given, dict | list):
        raise ConversionError(f"Not expecting a JSON {_kind(given)} for field '{name}'")
    if kind in ("double", "int"):
        return _number(given, kind, name)
    if kind == "bool":
        if not isinstance(given, bool):
            raise ConversionError(f"Not expecting a JSON {_kind(given)} for field '{name}'")
        return given
    if not isinstance(given, str):
        raise ConversionError(f"Not expecting a JSON {_kind(given)} for field '{name}'")
    if kind == "bytes":
        try:
            base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ConversionError(
                f"Failed to base64 decode bytes field '{name}': {error}"
            ) from error
    return given


def _number(given: object, kind: str, name: str) -> float | int:
    try:
        if isinstance(given, bool) or not isinstance(given, int | float | str):
            raise ValueError
        number = float(given)
        return number if kind == "double" else int(number)
    except (ValueError, OverflowError):
        raise ConversionError(f"Failed to parse '{given}' as a number for '{name}'") from None


def _kind(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean"}
    return names.get(type(value), "number")
