"""GraphQL nodes as the SDK's strict parsers want them."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.wandb_server.records import RunRecord


def iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def user(name: str) -> dict[str, Any]:
    return {
        "__typename": "User",
        "id": "VXNlcjox",
        "name": name,
        "username": name,
        "entity": name,
        "email": "nobody@example.invalid",
        "admin": False,
        "flags": "{}",
        "deletedAt": None,
        "apiKeys": None,
        "teams": {"edges": [{"node": {"name": name}}]},
    }


def project(entity: str, name: str) -> dict[str, Any]:
    return {
        "__typename": "Project",
        "id": "UHJvamVjdDox",
        "internalId": "1",
        "name": name,
        "entityName": entity,
        "createdAt": iso(0),
        "isBenchmark": False,
        "readOnly": False,
        "user": {**user(entity), "teams": None},
    }


def bucket(run: RunRecord) -> dict[str, Any]:
    """A run as the writing side sees it."""
    return {
        "id": run.storage_id,
        "name": run.name,
        "displayName": run.display_name,
        "description": None,
        "config": json.dumps(run.config),
        "sweepName": None,
        "project": {
            "id": "UHJvamVjdDox",
            "name": run.project,
            "entity": {"id": "RW50aXR5OjE=", "name": run.entity},
        },
        "historyLineCount": len(run.history),
        "createdAt": iso(run.created),
        "heartbeatAt": iso(run.heartbeat),
    }


def resume_status(run: RunRecord) -> dict[str, Any]:
    """What a resumed run is told of its earlier self."""
    return bucket(run) | {
        "summaryMetrics": json.dumps(run.summary),
        "logLineCount": len(run.console),
        "eventsLineCount": len(run.events),
        "historyTail": json.dumps([json.dumps(row) for row in run.history[-1:]]),
        "eventsTail": json.dumps([json.dumps(row) for row in run.events[-1:]]),
        "tags": run.tags,
        "notes": run.notes,
        "wandbConfig": json.dumps({"t": 1}),
    }


def run_node(run: RunRecord, state: str) -> dict[str, Any]:
    """A run as the reading side sees it."""
    keys = {key for row in run.rows for key in row}
    system = {key: value for row in run.events for key, value in row.items() if key.startswith("system.")}
    count = len(run.rows)
    return bucket(run) | {
        "projectId": 1,
        "state": state,
        "stopped": run.stopped,
        "tags": run.tags,
        "group": run.group,
        "jobType": run.job_type,
        "notes": run.notes,
        "commit": None,
        "readOnly": False,
        "summaryMetrics": json.dumps(run.summary),
        "systemMetrics": json.dumps(system),
        "user": {"name": run.entity, "username": run.entity},
        "historyLineCount": len(run.history),
        "historyKeys": {
            "keys": {key: {"typeCounts": [{"type": "number", "count": count}]} for key in keys},
            "lastStep": run.last_step,
            "sets": [],
        },
    }
