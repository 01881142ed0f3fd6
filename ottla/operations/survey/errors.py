"""Error responses of brokers, from the metrics of their HTTP ports (Ottla only)."""

import re

from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.http import HttpError, get_lines

_METRIC = b"kafka_network_requestmetrics_errors_total{"
_VALUE = re.compile(rb"}\s+([0-9.eE+]+)")
_NONE = b'error="NONE"'


def read_error_counts(connection: ClusterConnection) -> dict[int, int]:
    """Return the number of error responses of each broker since its start.

    Brokers whose HTTP port is unknown or does not answer are left out: those of Apache Kafka.
    """
    counts = {}
    for node, url in connection.settings.http_urls.items():
        try:
            counts[node] = sum(
                _count(line) for line in get_lines(url, "/metrics", connection.timeout_s)
            )
        except HttpError:
            continue
    return counts


def _count(line: bytes) -> int:
    if not line.startswith(_METRIC) or _NONE in line:
        return 0
    match = _VALUE.search(line)
    return int(float(match.group(1))) if match else 0
