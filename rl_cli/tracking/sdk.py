"""What is asked of the wandb SDK's public API. Runs in the child only (see `answers`).

Objects of the SDK are read anew for every question: those that it caches are frozen at the first answer.
Histories are always scanned without naming metrics: a scan with names leaves out rows that lack one of them,
and may be sampled at the borders of its pages.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from rl_cli.core.errors import nearest
from rl_cli.tracking.faults import Fault, fault_of
from rl_cli.tracking.figures import Figures
from rl_cli.tracking.file_stream import stopped_by_file_stream
from rl_cli.tracking.pages import PAGE_ROWS, is_all_live, live_rows, scan_rows
from rl_cli.tracking.queries import QUERY_SECONDS, STOP_QUERY, STOPPED_QUERY, VIEWER_QUERY

Row = dict[str, Any]
Send = Callable[[Row | str], None]

OPERATIONS = (
    *("viewer", "projects", "runs", "run", "run_state"),
    *("logged_steps", "history", "rows", "files", "system_metrics", "stop", "stop_asked"),
)
REPEATED_ROWS = 4 * PAGE_ROWS
"""Where W&B holds rows twice (exported and live), they come again within a page."""
SAMPLES = 5000
MOST_NAMES = 200
"""Runs that are looked through for a name near a wrong one."""


class Sdk:
    """The operations, by name."""

    def __init__(self) -> None:
        import wandb

        self._wandb = wandb
        self._api: Any = None
        self._scans: dict[str, Any] = {}
        self._entity = os.environ.get("WANDB_ENTITY")
        self._asks_file_stream = False
        """Whether the server does not know the query for a stop."""
        settings = wandb.setup().settings
        self.base_url = str(settings.base_url)
        self.api_key: str | None = settings.api_key
        self._operations: dict[str, Callable[[dict[str, Any], Send], Row]] = {
            name: getattr(self, name) for name in OPERATIONS
        }

    def answer(self, operation: str, arguments: dict[str, Any], send: Send) -> Row:
        """Raises whatever the SDK raises, or Fault."""
        return self._operations[operation](arguments, send)

    def viewer(self, arguments: Row, send: Send) -> Row:
        """{"entity"} of the key."""
        return {"entity": self._own_entity()}

    def projects(self, arguments: Row, send: Send) -> Row:
        """{"projects": [{"entity", "name", "created"}]}; arguments entity (default: the key's), limit."""
        entity = arguments.get("entity") or self._own_entity()
        found = islice(self._open(entity).projects(entity), arguments.get("limit", 50))
        rows = [{"entity": p.entity, "name": p.name, "created": str(p.created_at)} for p in found]
        return {"projects": rows}

    def runs(self, arguments: Row, send: Send) -> Row:
        """{"runs": [...], "total"}; arguments project, entity, filters (Mongo), order, limit."""
        limit = arguments.get("limit", 20)
        entity = arguments.get("entity") or self._own_entity()
        api, path = self._open(entity), f"{entity}/{arguments['project']}"
        api.flush()
        try:
            found = api.runs(
                path,
                filters=arguments.get("filters") or {},
                order=arguments.get("order", "-created_at"),
                per_page=min(limit, 50),
                lazy=False,
            )
            rows = [self._described(run) for run in islice(found, limit)]
            return {"runs": rows, "total": len(found)}
        except ValueError as error:
            if "find project" not in str(error).lower():
                raise
            raise Fault("not_found", f"W&B has no project {path}", self._near_project(api, path)) from error

    def run(self, arguments: Row, send: Send) -> Row:
        """One run: identity, state, config, summary, newest system metrics; argument path."""
        run = self._run(arguments["path"])
        config = {name: value for name, value in run.config.items() if not name.startswith("_")}
        system = dict(run.system_metrics or {})
        return {**self._described(run), "config": config, "notes": run.notes, "system": system}

    def run_state(self, arguments: Row, send: Send) -> Row:
        """{"state", "last_step", "rows", "heartbeat", "url", ...} as it is now; argument path."""
        return self._described(self._run(arguments["path"]))

    def logged_steps(self, arguments: Row, send: Send) -> Row:
        """What was logged under some axes; arguments path, axes, min_step.

        {"rows": rows of the history, "steps": {axis: the distinct values that it took, rising}}
        """
        steps: dict[str, set[Any]] = {axis: set() for axis in arguments["axes"]}
        rows = 0
        run = self._run(arguments["path"])
        for row in self._scan(run, arguments.get("min_step", 0), False):
            rows += 1
            for axis in steps:
                if axis in row:
                    steps[axis].add(row[axis])
        return {"rows": rows, "steps": {axis: sorted(values) for axis, values in steps.items()}}

    def history(self, arguments: Row, send: Send) -> Row:
        """Metrics over all steps, exact unless "exact" is false; arguments path, keys, axis, points, seconds.

        {"exact", "why_not"?, "rows", "axis", "metrics": {name: {"count", "first", "last", "min", "max",
        "not_finite", "points"}}, "names": those that there are}
        """
        run = self._run(arguments["path"])
        until = time.monotonic() + arguments.get("seconds", 60)
        figures = Figures(arguments.get("keys") or None, arguments.get("axis"))
        why_not = None
        for row in self._scan(run, 0, False):
            figures.add(row)
            if time.monotonic() > until:
                why_not = f"there was time for the first {figures.rows} rows only, up to step {row['_step']}"
                break
        summary = _plain_summary(run)
        if not figures.rows and summary:
            for row in run.history(samples=SAMPLES, pandas=False):
                figures.add(row)
            why_not = "the scan gave no rows although the summary has figures"
            why_not += ": these are sampled" if figures.rows else ""
        result = figures.result(arguments.get("points", 40))
        return {**self._described(run), **result, "exact": why_not is None, "why_not": why_not}

    def rows(self, arguments: Row, send: Send) -> Row:
        """Sends every row from min_step on, and how the run is; arguments path, min_step, most, config."""
        run = self._run(arguments["path"])
        described = {**self._described(run), "config": dict(run.config) if arguments.get("config") else None}
        sent = 0
        start, last = arguments.get("min_step", 0), run.lastHistoryStep
        found: Iterator[Row | str]
        if last is not None and last >= start and is_all_live(run):
            found = live_rows(run, start, last + 1)  # nobody here has to understand them
        else:
            found = self._scan(run, start, True)
        for row in found:
            send(row)
            sent += 1
            if sent >= arguments.get("most", 10**9):
                break
        return {**described, "sent": sent}

    def files(self, arguments: Row, send: Send) -> Row:
        """{"files": those of `names` that W&B has, with content}; arguments path, names."""
        found = self._run(arguments["path"]).files(names=arguments["names"])
        return {"files": [file.name for file in found if int(file.size or 0) > 0]}

    def system_metrics(self, arguments: Row, send: Send) -> Row:
        """System figures over time, sampled by W&B itself; arguments path, points."""
        run = self._run(arguments["path"])
        figures = Figures(None, "_runtime")
        for row in run.history(stream="system", samples=arguments.get("samples", 500), pandas=False):
            figures.add(row)
        result = figures.result(arguments.get("points", 20))
        return {**self._described(run), **result, "exact": False, "newest": dict(run.system_metrics or {})}

    def stop(self, arguments: Row, send: Send) -> Row:
        """Asks W&B to stop a run that runs, and says how it was; argument path."""
        run = self._run(arguments["path"])
        before = self._described(run)
        if before["state"] == "running":
            self._query(STOP_QUERY, {"id": run.storage_id})  # run.stop() has no bound
        return {**before, "requested": before["state"] == "running"}

    def stop_asked(self, arguments: Row, send: Send) -> Row:
        """{"stopped"}: whether somebody has pressed stop on the page of a run; argument path."""
        entity, project, name = arguments["path"].split("/", 2)
        variables = {"entityName": entity, "projectName": project, "runId": name}
        if not self._asks_file_stream:
            try:
                data = self._query(STOPPED_QUERY, variables, entity)
                return {"stopped": bool(data["project"]["run"]["stopped"])}
            except Exception as error:
                if fault_of(error, self.base_url, self.api_key)["kind"] != "refused":
                    raise
                self._asks_file_stream = True
        return {"stopped": stopped_by_file_stream(self.base_url, self.api_key, arguments["path"])}

    def _query(self, query: str, variables: Row, entity: str | None = None) -> Row:
        """One query of our own, with a bound that those of the SDK lack."""
        answer: Row = self._open(entity)._service_api.execute_graphql(query, variables, timeout=QUERY_SECONDS)
        return answer

    def _own_entity(self) -> str:
        """Whose key it is: by the one query of the kind that every server answers; others may be refused."""
        if self._entity is None:
            try:
                self._entity = self._query(VIEWER_QUERY, {})["viewer"]["entity"]
            except Exception as error:
                if fault_of(error, self.base_url, self.api_key)["kind"] not in ("refused", "bad_answer"):
                    raise
                self._entity = self._open().viewer.entity
        return str(self._entity)

    def _open(self, entity: str | None = None) -> Any:
        if self._api is None:
            self._api = self._wandb.Api(overrides={"entity": entity} if entity else None)
            self.api_key = self._api.api_key or self.api_key
        if entity:
            self._api.settings["entity"] = entity  # else it asks for the key's, each time
        return self._api

    def _run(self, path: str) -> Any:
        api = self._open(path.split("/")[0])
        api.flush()
        try:
            return api.run(path)
        except self._wandb.errors.CommError as error:
            if type(error.exc).__name__ != "RunNotFoundError":
                raise
            raise Fault("not_found", f"W&B has no run {path}", self._near_run(api, path)) from error

    def _scan(self, run: Any, min_step: int, go_on: bool) -> Iterator[Row]:
        """Rows of the whole history from a step on, in order; a row that comes again as it was is left out.

        Args:
            run: The run, read just now.
            min_step: The first `_step`.
            go_on: Continue the last scan of this run: another one would read the numbers of all steps first.
        """
        last = run.lastHistoryStep
        if last is None or last < min_step:
            return
        if is_all_live(run):
            yield from map(json.loads, live_rows(run, min_step, last + 1))
            return
        found = scan_rows(self._scan_of(run, go_on), min_step, last + 1)
        newest: dict[int, Row] = {}
        for row in found:
            step = row.get("_step")
            if not isinstance(step, int) or newest.get(step) == row:
                continue
            newest[step] = row
            if len(newest) > REPEATED_ROWS:
                del newest[next(iter(newest))]
            yield row

    def _scan_of(self, run: Any, go_on: bool) -> Any:
        path = "/".join(run.path)
        scan = self._scans.get(path) if go_on else None
        if scan is None:
            scan = run.scan_history(page_size=PAGE_ROWS)
        if go_on:
            self._scans[path] = scan
        return scan

    def _described(self, run: Any) -> Row:
        attributes = run._attrs
        keys = attributes.get("historyKeys")
        keys = keys if isinstance(keys, dict) else {}
        return {
            "path": f"{run.entity}/{run.project}/{run.id}",
            "id": run.id,
            "name": run.name,
            "state": run.state,
            "url": run.url,
            "created": attributes.get("createdAt"),
            "heartbeat": attributes.get("heartbeatAt"),
            "last_step": keys.get("lastStep", -1),
            "rows": attributes.get("historyLineCount"),
            "user": (attributes.get("user") or {}).get("username"),
            "group": attributes.get("group"),
            "job_type": attributes.get("jobType"),
            "tags": attributes.get("tags") or [],
            "summary": _plain_summary(run),
        }

    def _near_run(self, api: Any, path: str) -> str | None:
        entity, project, name = path.split("/", 2)
        try:
            found = islice(api.runs(f"{entity}/{project}", order="-created_at", per_page=50), MOST_NAMES)
            names = {run.id: run.name for run in found}
        except Exception:  # a help only
            return f'rl-cli tools call wandb_list_runs \'{{"project": "{entity}/{project}"}}\' lists runs'
        close = nearest(name, list(names)) or [i for i, shown in names.items() if shown == name]
        close = close or list(names)[:3]
        return f"nearest: {', '.join(close)}" if close else f"{entity}/{project} has no runs"

    def _near_project(self, api: Any, path: str) -> str | None:
        entity, _, project = path.rpartition("/")
        try:
            names = [p.name for p in islice(api.projects(entity or None), MOST_NAMES)]
        except Exception:  # a help only
            return None
        close = nearest(project, names) or names[:3]
        return f"nearest: {', '.join(close)}" if close else f"{entity} has no projects"


def _plain_summary(run: Any) -> Row:
    """Figures of the summary; what W&B keeps beside them (tables, media, its own) is left out."""
    found = run.summary_metrics
    names = [name for name in found if name == "_step" or not name.startswith("_")]
    return {name: found[name] for name in names if isinstance(found[name], int | float | str)}
