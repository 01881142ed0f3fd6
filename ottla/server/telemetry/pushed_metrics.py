"""Metrics that clients have pushed (KIP-714), as JSON for a console and as Prometheus' families.

Kafka asks clients for the increase of a sum since their last push (delta temporality), so that is
what a sum's value is: `is_delta` in JSON, and the suffix `_delta` of names for Prometheus. Other
values are gauges.
"""

import logging
import math
import re
from collections.abc import Iterable, Iterator

from ottla.metrics.exposition import Family, Kind, labels
from ottla.server.telemetry.clients import Pushed
from ottla.server.telemetry.otlp import Figure, figures

_log = logging.getLogger(__name__)

PREFIX = "kafka_client_"
_KAFKA = "org.apache.kafka."
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")
# Names and labels come from clients.
_NAME_MAX = 200
_LABELS_MAX = 16


def readable(pushed: Pushed) -> Iterator[Figure]:
    """Yield the metrics of a push, up to the first byte that is not OpenTelemetry's."""
    try:
        yield from figures(pushed.payload)
    except ValueError as error:
        _log.debug("payload of a client is damaged client=%s error=%s", pushed.instance_id, error)


def client_json(pushed: Pushed, samples: Iterable[Figure], now_ms: float) -> dict[str, object]:
    """Return a client with its latest metrics; a value that is not finite is null."""
    return {
        "instance_id": pushed.instance_id,
        **{
            name: value for name, value in pushed.attributes.items() if name != "client_instance_id"
        },
        "age_seconds": round((now_ms - pushed.at_ms) / 1000, 3),
        "is_terminating": pushed.is_terminating,
        "metrics": [
            {
                "name": figure.name,
                "labels": dict(figure.labels),
                "value": figure.value if math.isfinite(figure.value) else None,
                "is_delta": figure.is_sum,
            }
            for figure in samples
        ],
    }


class ClientFamilies:
    """Collects the metrics of clients by name, up to `samples_max` samples."""

    def __init__(self, samples_max: int) -> None:
        self._left = samples_max
        self._samples: dict[str, dict[str, float]] = {}

    def add(self, pushed: Pushed, figure: Figure) -> None:
        """Add one metric of a client; of metrics with the same name and labels the last one."""
        samples = self._samples.setdefault(metric_name(figure), {})
        written = _labels(figure, pushed)
        if written not in samples:
            if self._left <= 0:
                return
            self._left -= 1
        samples[written] = figure.value

    def families(self) -> Iterator[Family]:
        """Yield the families, ordered by name."""
        for name, samples in sorted(self._samples.items()):
            yield Family(name, Kind.GAUGE, "Pushed by clients.", samples.items())


def metric_name(figure: Figure) -> str:
    """Return the name for Prometheus: without Kafka's own prefix, and with ours."""
    name = _NOT_IN_NAMES.sub("_", figure.name.removeprefix(_KAFKA)[:_NAME_MAX]).lower()
    return f"{PREFIX}{name}{'_delta' if figure.is_sum else ''}"


def _labels(figure: Figure, pushed: Pushed) -> str:
    own: dict[str, object] = {
        f"_{cleaned}" if cleaned[:1].isdigit() else cleaned or "_": value
        for cleaned, value in _cleaned(figure.labels.items())
    }
    own["client_id"] = pushed.attributes.get("client_id") or ""
    own["client_instance_id"] = pushed.instance_id
    return labels(**own)


def _cleaned(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for index, (key, value) in enumerate(pairs):
        if index < _LABELS_MAX:
            yield _NOT_IN_NAMES.sub("_", key[:_NAME_MAX]), value
