"""GraphQL operations of the public API: whoever looks at runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.wandb_server import shapes
from tests.wandb_server.filters import passes
from tests.wandb_server.records import Row, RunRecord
from tests.wandb_server.writing import Variables, need

if TYPE_CHECKING:
    from tests.wandb_server.server import WandbServer

SAMPLES = 500


def viewer(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    return {"viewer": {**shapes.user(server.entity), "accountType": "USER", "apiKeys": {"edges": []}}}


def default_entity(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    return {"viewer": {"id": "VXNlcjox", "entity": server.entity, "defaultEntity": {"name": server.entity}}}


def get_projects(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    entity = given.get("entity") or server.entity
    names = sorted({run.project for run in server.runs.values() if run.entity == entity})
    edges = [{"node": shapes.project(entity, name), "cursor": name} for name in names]
    info = {"__typename": "PageInfo", "endCursor": names[-1] if names else None, "hasNextPage": False}
    return {"models": {"edges": edges, "pageInfo": info}}


def get_project(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    entity = given.get("entity") or server.entity
    return {"project": shapes.project(entity, given.get("project") or given["name"])}


def run(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    found = server.find(given.get("entity"), given.get("project"), given["name"])
    return {"project": {"run": shapes.run_node(found, server.state_of(found)) if found else None}}


def runs(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    where = (given.get("entity") or server.entity, given["project"])
    of_project = [run for run in server.runs.values() if (run.entity, run.project) == where]
    if not of_project:
        return {"project": None}
    filters = json.loads(given.get("filters") or "{}")
    wanted = [run for run in of_project if passes(run, server.state_of(run), filters)]
    wanted.sort(key=lambda run: run.created, reverse=(given.get("order") or "+").startswith("-"))
    start, count = int(given.get("cursor") or 0), int(given.get("perPage") or 50)
    page = wanted[start : start + count]
    edges = [
        {"node": shapes.run_node(run, server.state_of(run)), "cursor": str(start + i + 1)}
        for i, run in enumerate(page)
    ]
    more = start + len(page) < len(wanted)
    info = {"endCursor": str(start + len(page)), "hasNextPage": more}
    found = {"edges": edges, "pageInfo": info}
    return {"project": {"internalId": 1, "runCount": len(wanted), "readOnly": False, "runs": found}}


def full_history(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    record = need(server, given)
    node = "events" if "events(" in query else "history"
    rows = [row for row in (record.events if node == "events" else record.history) if row]
    kept = _sample(rows, int(given.get("samples") or SAMPLES))
    return {"project": {"run": {node: [json.dumps(row) for row in kept]}}}


def sampled_history(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    record = need(server, given)
    sampled = [_of_spec(record, json.loads(spec)) for spec in given["specs"]]
    return {"project": {"run": {"sampledHistory": sampled}}}


def parquet_history(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    """No exports: everything is live."""
    record = need(server, given, "runName")
    keys = given.get("liveKeys") or []
    live = [{key: row[key] for key in keys if key in row} for row in record.rows]
    return {"project": {"run": {"parquetHistory": {"parquetUrls": [], "liveData": live}}}}


def history_page(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    """Rows of minStep up to but not maxStep."""
    record = need(server, given, "run")
    rows = [row for row in record.rows if given["minStep"] <= row["_step"] < given["maxStep"]]
    page = rows[: given["pageSize"]]
    return {"project": {"run": {"history": [json.dumps(row) for row in page]}}}


def sampled_history_page(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    record = need(server, given, "run")
    return {"project": {"run": {"sampledHistory": [_of_spec(record, json.loads(given["spec"]))]}}}


def run_files(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    record = need(server, given)
    folder = f"{server.url}/storage/{record.entity}/{record.project}/{record.name}"
    wanted = given.get("fileNames") or list(record.files)
    edges = [
        {
            "cursor": name,
            "node": {
                "id": name,
                "name": name,
                "url": f"{folder}/{name}",
                "directUrl": f"{folder}/{name}",
                "sizeBytes": str(len(content)),
                "mimetype": "application/octet-stream",
                "md5": "",
                "updatedAt": shapes.iso(record.heartbeat),
            },
        }
        for name, content in record.files.items()
        if name in wanted
    ]
    files = {"edges": edges, "pageInfo": {"endCursor": None, "hasNextPage": False}}
    return {"project": {"internalId": 1, "run": {"fileCount": len(record.files), "files": files}}}


def _of_spec(record: RunRecord, spec: dict[str, Any]) -> list[Row]:
    """Rows that have all keys of minStep up to AND WITH maxStep, sampled."""
    low, high = spec.get("minStep"), spec.get("maxStep")
    rows = [
        {key: row[key] for key in spec["keys"]}
        for row in record.rows
        if all(key in row for key in spec["keys"])
        and (low is None or row["_step"] >= low)
        and (high is None or row["_step"] <= high)
    ]
    return _sample(rows, spec.get("samples") or SAMPLES)


def _sample(rows: list[Row], count: int) -> list[Row]:
    return rows if len(rows) <= count else [rows[i * len(rows) // count] for i in range(count)]


def stopped_status(server: WandbServer, given: Variables, query: str) -> dict[str, Any]:
    found = server.find(given.get("entityName"), given.get("projectName"), given["runId"])
    return {"project": {"run": {"stopped": found.stopped} if found else None}}


OPERATIONS = {
    "RunStoppedStatus": stopped_status,
    "Viewer": viewer,
    "GetViewer": viewer,
    "GetDefaultEntity": default_entity,
    "GetProjects": get_projects,
    "GetProject": get_project,
    "Run": run,
    "RunState": run,
    "RunHistoryKeys": run,
    "Runs": runs,
    "RunFullHistory": full_history,
    "RunSampledHistory": sampled_history,
    "RunParquetHistory": parquet_history,
    "HistoryPage": history_page,
    "SampledHistoryPage": sampled_history_page,
    "RunFiles": run_files,
}
