"""GraphQL of our own: where the SDK asks in words that not every server knows, or without a bound."""

from __future__ import annotations

QUERY_SECONDS = 8
VIEWER_QUERY = "query Viewer { viewer { id entity username } }"
STOP_QUERY = "mutation StopRun($id: ID!) { stopRun(input: {id: $id}) { success } }"
STOPPED_QUERY = """
query RunStoppedStatus($entityName: String, $projectName: String, $runId: String!) {
  project(name: $projectName, entityName: $entityName) { run(name: $runId) { stopped } }
}
"""
