"""GraphQL operations of a process that logs or uploads a run."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.wandb_server import shapes
from tests.wandb_server.records import RunRecord

if TYPE_CHECKING:
    from tests.wandb_server.server import WandbServer

Variables = dict[str, Any]


class GraphqlError(Exception):
    """Answered as 200 with `errors`."""


def _storage_id(entity: str, project: str, name: str) -> str:
    return base64.b64encode(f"Run:v1:{name}:{project}:{entity}".encode()).decode()


def upsert_bucket(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    run = server.by_storage_id(given["id"]) if given.get("id") else None
    if run is None:
        run = server.find(given.get("entity"), given.get("project"), given["name"])
    inserted = run is None
    if run is None:
        entity, project = given.get("entity") or server.entity, given.get("project") or "uncategorized"
        storage_id = _storage_id(entity, project, given["name"])
        run = RunRecord(entity, project, given["name"], storage_id, given["name"])
        server.runs[entity, project, run.name] = run
    if given.get("config"):
        run.config = json.loads(given["config"])
    if given.get("summaryMetrics"):
        run.summary = json.loads(given["summaryMetrics"])
    for variable, attribute in (
        ("displayName", "display_name"),
        ("display_name", "display_name"),
        ("tags", "tags"),
        ("groupName", "group"),
        ("jobType", "job_type"),
        ("notes", "notes"),
        ("host", "host"),
        ("state", "state"),
    ):
        if given.get(variable) is not None:
            setattr(run, attribute, given[variable])
    node = shapes.run_node(run, server.state_of(run)) if "RunFragment" in query else shapes.bucket(run)
    return {"upsertBucket": {"bucket": node, "inserted": inserted}}


def run_resume_status(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    run = server.find(given.get("entity"), given.get("project"), given["name"])
    entity = given.get("entity") or server.entity
    return {
        "model": {
            "id": "UHJvamVjdDox",
            "name": given.get("project"),
            "entity": {"id": "RW50aXR5OjE=", "name": entity},
            "bucket": shapes.resume_status(run) if run else None,
        }
    }


def rewind_run(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    run = need(server, given, "runName")
    last = int(given["metricValue"])
    run.history = [row for row in run.rows if int(row.get("_step", 0)) <= last]
    run.state = "running"
    return {"rewindRun": {"rewoundRun": shapes.bucket(run)}}


def stop_run(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    run = server.by_storage_id(given["id"])
    if run is None:
        raise GraphqlError("run not found")
    run.stopped = True
    return {"stopRun": {"success": True}}


def create_run_files(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    run = need(server, given, "run")
    folder = f"{server.url}/storage/{run.entity}/{run.project}/{run.name}"
    files = [{"name": name, "uploadUrl": f"{folder}/{quote(name)}"} for name in given["files"]]
    return {"createRunFiles": {"runID": run.storage_id, "uploadHeaders": [], "files": files}}


def organization(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    return {"entity": {"organization": {"coreWeaveOrganizationId": None}}}


def server_features(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    return {"serverInfo": {"features": []}}


def need(server: WandbServer, given: Variables, name: str = "name") -> RunRecord:
    run = server.find(given.get("entity"), given.get("project"), given[name])
    if run is None:
        raise GraphqlError("run not found")
    return run


OPERATIONS = {
    "UpsertBucket": upsert_bucket,
    "RunResumeStatus": run_resume_status,
    "RewindRun": rewind_run,
    "StopRun": stop_run,
    "CreateRunFiles": create_run_files,
    "MarkRunFilesUploaded": lambda server, given, query: {"markRunFilesUploaded": {"success": True}},
    "OrganizationCoreWeaveOrganizationID": organization,
    "ServerFeaturesQuery": server_features,
}
