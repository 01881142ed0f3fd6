"""`/healthz`: whether the broker can do all of its work, for load balancers and supervisors.

200 for `ok`. 503 for `starting` and `stopping`, and for `degraded`: a log directory is offline (the
partitions of the others are served), or a background task has failed in the last two minutes.
`background_failures` counts unexpected exceptions since the start, by kind of task. Partitions with
damaged records are listed, and do not change the status: all of their other records are served.
A partition whose log is unusable until the next start is listed with them. `skipped_records` counts
the records of internal topics that a coordinator could not read.
"""

import json

from ottla.cluster.names import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from ottla.server.monitoring.http import HttpResponse
from ottla.server.monitoring.sources import Sources

# At most this many damaged partitions are named.
_DAMAGED_MAX = 100


def health(node: Sources) -> HttpResponse:
    """Return the page."""
    facts: dict[str, object] = {"status": node.stage.value, "node_id": node.node_id}
    broker = node.running_broker
    if broker is not None:
        failed = [
            {"path": directory.path, "reason": str(directory.failure)}
            for directory in broker.replicas.directories.directories()
            if directory.failure is not None
        ]
        failing: dict[str, str] = {}
        for tasks in node.tasks:
            failing |= tasks.failing()
        facts["status"] = "degraded" if failed or failing else "ok"
        facts["cluster_id"] = broker.cluster_id
        facts["is_controller"] = broker.controller.is_active
        facts["offline_directories"] = failed
        facts["failing_tasks"] = failing
        failures = node.task_failures()
        facts["background_failures"] = {kind: count for kind, count in failures.items() if count}
        damaged = broker.replicas.directories.damaged()
        facts["damaged_partitions"] = {
            f"{topic}-{partition}": reason
            for (topic, partition), reason in sorted(damaged.items())[:_DAMAGED_MAX]
        }
        skipped = {
            GROUP_OFFSETS_TOPIC: broker.groups.skipped_count,
            TRANSACTION_STATE_TOPIC: broker.transactions.skipped_count,
        }
        facts["skipped_records"] = {topic: count for topic, count in skipped.items() if count}
    status = 200 if facts["status"] == "ok" else 503
    return HttpResponse(status, "application/json", [json.dumps(facts).encode() + b"\n"])
