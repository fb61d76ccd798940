"""The bodies of the HTTP API as JSON Schemas, by the names that ``api.operations`` uses.

``api.openapi`` puts them into its document. They say what clients may rely on; answers hold more in
the places that say so. Pure data.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_SWITCH: Schema = {"type": "boolean"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _map(of: Schema) -> Schema:
    return {"type": "object", "additionalProperties": of}


def _or_null(kind: str) -> Schema:
    return {"type": [kind, "null"]}


def _object(required: dict[str, Schema], more: dict[str, Schema] | None = None) -> Schema:
    """Return the schema of an object that always has ``required``, and may have ``more``."""
    return {
        "type": "object",
        "properties": {**required, **(more or {})},
        "required": list(required),
    }


_STATUS: Schema = {
    "enum": [
        *("ERROR", "WAITING", "PENDING", "PREPARED", "STARTING", "STARTED"),
        *("COMPLETE", "IN_PROGRESS", "DELAYED"),
    ]
}
_STRATEGY: Schema = {"enum": ["serial", "parallel", "canary"]}
_PROBLEM = _object(
    {"path": _TEXT, "message": _TEXT, "given": _TEXT, "allowed": _TEXT}, {"suggestion": _TEXT}
)
_VERDICT = _object({"outcome": _TEXT, "exit_code": {"type": "integer"}, "summary": _TEXT})
_OFFER = _object(
    {
        "timestamp": {"type": "integer", "description": "unix milliseconds"},
        "pod-instance-name": _TEXT,
        "outcome": {"enum": ["pass", "fail"]},
        "explanation": _TEXTS,
        "offer": {"type": "object"},
    }
)
_TASK_OF_CLUSTER: dict[str, Schema] = {
    "address": _or_null("string"),
    "launched_with_epoch": _or_null("integer"),
}
_TOLD: dict[str, Schema] = {
    "data_shard": _object({"index": _COUNT, "count": _COUNT}),
    "tf_config": _or_null("object"),
    "server": _or_null("object"),
}

SCHEMAS: dict[str, Schema] = {
    "Any": {"description": "any JSON"},
    "Message": _object({"message": _TEXT}),
    "UnknownPath": _object({"message": _TEXT, "verbs": _TEXTS}),
    "Problems": _object({"message": _TEXT}, {"problems": _list(_PROBLEM)}),
    "Names": _TEXTS,
    "Step": _object({"id": _TEXT, "name": _TEXT, "status": _STATUS, "message": _TEXT}),
    "Phase": _object(
        {
            "id": _TEXT,
            "name": _TEXT,
            "steps": _list(_ref("Step")),
            "strategy": _STRATEGY,
            "status": _STATUS,
        }
    ),
    "Plan": _object(
        {
            "phases": _list(_ref("Phase")),
            "errors": _TEXTS,
            "strategy": _STRATEGY,
            "status": _STATUS,
        }
    ),
    "PodInstance": _object(
        {
            "name": _TEXT,
            "tasks": _list(_object({"id": _TEXT, "name": _TEXT, "status": _TEXT})),
        }
    ),
    "PodsStatus": _object(
        {
            "service": _TEXT,
            "pods": _list(_object({"name": _TEXT, "instances": _list(_ref("PodInstance"))})),
        }
    ),
    "Part": _object(
        {
            "task_id": _TEXT,
            "file": _TEXT,
            "offset": _COUNT,
            "data": _TEXT,
            "next_offset": _COUNT,
            "size": _COUNT,
        }
    ),
    "TaskInfos": _list(_object({"info": {"type": "object"}, "status": {"type": "object"}})),
    "Endpoint": _object({"address": _TEXTS, "dns": _TEXTS}, {"vip": _TEXT}),
    "Configuration": _object(
        {
            "name": _TEXT,
            "role": _TEXT,
            "principal": _TEXT,
            "user": _TEXT,
            "pod-specs": _list(_object({"type": _TEXT, "count": _COUNT, "user": _TEXT})),
            "spec": {"type": "object"},
        },
        {"options": {"type": "object"}},
    ),
    "Offers": _object(
        {
            "acceptedCount": _COUNT,
            "rejectedCount": _COUNT,
            "failureReasons": _map(_COUNT),
            "rejectedAgents": _map(_COUNT),
            "offers": _list(_OFFER),
        }
    ),
    "InvalidInput": _object({"invalid-input": _TEXT}),
    "DebugPlans": {
        "anyOf": [
            _ref("InvalidInput"),
            _object(
                {
                    "schedulerState": _TEXT,
                    "registered": _SWITCH,
                    "suppressed": _or_null("boolean"),
                    "activePlans": _TEXTS,
                    "totalSteps": _COUNT,
                    "completedSteps": _COUNT,
                    "stepsByStatus": _map(_COUNT),
                    "plans": _list({"type": "object"}),
                }
            ),
        ]
    },
    "Reservations": _map(_TEXTS),
    "TaskStatuses": {
        "anyOf": [
            _ref("InvalidInput"),
            _map(
                _map(
                    _map(
                        _list(
                            _object(
                                {
                                    "name": _TEXT,
                                    "taskId": _or_null("string"),
                                    "taskState": _or_null("string"),
                                }
                            )
                        )
                    )
                )
            ),
        ]
    },
    "Cluster": _object(
        {
            "epoch": _COUNT,
            "strategy": _TEXT,
            "addressing": _TEXT,
            "addresses": _map(_TEXT),
            "complete": _SWITCH,
            "tasks": _map(_object(_TASK_OF_CLUSTER, _TOLD)),
        }
    ),
    "TaskOfCluster": _object({"epoch": _COUNT, **_TASK_OF_CLUSTER, **_TOLD}),
    "Job": _object(
        {
            "service": _TEXT,
            "phase": _TEXT,
            "why": _TEXT,
            "deployed": _SWITCH,
            "attempt": _COUNT,
            "restarts": _COUNT,
            "retry_limit": _COUNT,
            "started_at": _or_null("number"),
            "finished_at": _or_null("number"),
            "restart_at": _or_null("number"),
            "restarting": _TEXTS,
            "absent": _TEXTS,
            "paused": _TEXTS,
            "configuration": _TEXT,
            "refused_configuration": _or_null("string"),
            "uninstalling": _SWITCH,
            "given_up": _TEXTS,
            "outcome_policy": _TEXT,
            "deciding_tasks": _TEXTS,
            "verdict": {"anyOf": [{"type": "null"}, _VERDICT]},
            "result": _or_null("object"),
            "incidents": _list({"type": "object"}),
            "tasks": _map(
                _object(
                    {
                        "state": _or_null("string"),
                        "attempt": _COUNT,
                        "report": _or_null("object"),
                    }
                )
            ),
        }
    ),
    "Why": _object(
        {
            "phase": _TEXT,
            "why": _TEXT,
            "registered": _SWITCH,
            "suppressed": _or_null("boolean"),
            "tasks": _map(
                _object(
                    {
                        "plan": _TEXT,
                        "status": _STATUS,
                        "why": _TEXT,
                        "agents_by_reason": _map(_COUNT),
                    }
                )
            ),
            "storage": _map(
                _list(
                    _object(
                        {
                            "part": _TEXT,
                            "about": _TEXT,
                            "state": _TEXT,
                            "kind": _TEXT,
                            "summary": _TEXT,
                            "hint": _TEXT,
                            "since": _or_null("number"),
                            "why": _TEXT,
                        }
                    )
                )
            ),
            "offers": _object(
                {
                    "held": _list(
                        _object(
                            {
                                "offer_id": _TEXT,
                                "agent_id": _TEXT,
                                "hostname": _TEXT,
                                "resources": {"type": "object"},
                            }
                        )
                    ),
                    "handed_back": _list(_OFFER),
                }
            ),
        }
    ),
    "Metrics": _object(
        {
            "version": _TEXT,
            "gauges": _map(_object({"value": {"type": ["number", "string"]}})),
            "counters": _map(_object({"count": _NUMBER})),
            "histograms": {"type": "object"},
            "meters": {"type": "object"},
            "timers": {"type": "object"},
        }
    ),
    "Health": _object({"value": {"type": "integer"}}, {"reasons": _TEXTS}),
    "Received": _object({"message": _TEXT}, {"why": _TEXT}),
    "PodAnswer": _object({"pod": _TEXT, "tasks": _TEXTS}),
    "NoSuchTasks": _object({"message": _TEXT, "tasks": _TEXTS}),
    "Changed": _object({"message": _TEXT, "id": _TEXT, "restarts": _TEXTS}),
    "Unchanged": _object({"message": _TEXT, "id": _TEXT}),
    "NoParameters": {
        "type": "object",
        "maxProperties": 0,
        "description": "plans take no parameters: variables for the tasks are options",
    },
    "Reason": {
        "type": "object",
        "properties": {"why": {"type": "string", "maxLength": 300}},
        "additionalProperties": False,
    },
    "WantedConfiguration": {
        "type": "object",
        "properties": {"id": {"type": "string", "format": "uuid"}},
        "required": ["id"],
        "additionalProperties": False,
    },
    "Options": {
        "type": "object",
        "description": "an options file: config-schemas/options.schema.json",
    },
}
