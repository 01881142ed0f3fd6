"""`/healthz`: whether the broker can do all of its work, for load balancers and supervisors.

200 for `ok`. 503 for `starting` and `stopping`, and for `degraded`: a log directory is offline, the
partitions of the others are served.
"""

import json

from ottla.server.monitoring.http import Answer
from ottla.server.monitoring.sources import Sources, Stage


def health(node: Sources) -> Answer:
    """Return the page."""
    facts: dict[str, object] = {"status": node.stage.value, "node_id": node.broker.node_id}
    if node.stage is Stage.RUNNING:
        failed = [
            {"path": each.path, "reason": str(each.failure)}
            for each in node.broker.replicas.directories.directories()
            if each.failure is not None
        ]
        facts["status"] = "degraded" if failed else "ok"
        facts["cluster_id"] = node.broker.cluster_id
        facts["is_controller"] = node.broker.controller.is_active
        facts["offline_directories"] = failed
    status = 200 if facts["status"] == "ok" else 503
    return Answer(status, "application/json", [json.dumps(facts).encode() + b"\n"])
