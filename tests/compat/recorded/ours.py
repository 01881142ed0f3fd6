"""Plays transcripts to an Ottla broker in this process, and compares the responses."""

import tempfile
from pathlib import Path
from typing import Any

from ottla.testing.cluster import Cluster
from ottla.wire.api_keys import ApiKey
from tests.compat.recorded import notation
from tests.compat.recorded.messages import TEXTS
from tests.compat.recorded.player import Played, Target, play
from tests.compat.recorded.transcript import Exchange, Transcript, version_text

# Settings that make a recording reproducible; the recorder sets the same for Apache Kafka.
OPTIONS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.consumer.assignment.interval.ms": "0",
    # Many records have old timestamps: retention must not delete them on a slow machine.
    "log.initial.task.delay.ms": "3600000",
}


def play_to_ottla(transcript: Transcript) -> Played:
    """Play everything to a new broker."""
    options = {**OPTIONS, **transcript.options}
    with tempfile.TemporaryDirectory(prefix="recorded-") as folder:
        if "log.dirs" in options:
            count = int(options["log.dirs"])
            options["log.dirs"] = ",".join(str(Path(folder, str(n))) for n in range(count))
        with Cluster(options=options) as cluster:
            return play(transcript, Target(cluster.host, cluster.port))


def differences(transcript: Transcript, played: Played) -> list[str]:
    """Return the differences of Ottla's responses, and the deviations that no longer exist."""
    values = []
    for exchange in transcript.exchanges():
        responses = played[exchange.line]
        problems: dict[str, list[int]] = {}
        for version in exchange.versions:
            # APIs that are not supported are in docs/gaps.md.
            response = responses.get(version)
            problem = response and _judge(exchange, version, response)
            if problem:
                problems.setdefault(problem, []).append(version)
        if problems:
            values.append(f"{transcript.path.name}:{exchange.line} {exchange.source[:300]}")
            values += [f"  v{version_text(them)} {what}" for what, them in problems.items()]
    return values


def _judge(exchange: Exchange, version: int, response: str) -> str | None:
    kafka, ours = exchange.modern.get(version), exchange.ours.get(version)
    if kafka is None and ours is None:
        return "has no recorded answer: run the recorder"
    if ours is not None and exchange.reason is None:
        return "deviates without a reason: write a line with !"
    if ours is not None and kafka is not None and agree(exchange, kafka, response):
        return "answers as Kafka does now: remove the deviation"
    expected = ours or kafka
    assert expected is not None
    if agree(exchange, expected, response):
        return None
    return f"expected {expected}\n    answered {response}"


def agree(exchange: Exchange, expected: str, response: str) -> bool:
    """Return True if an application cannot distinguish the two responses."""
    if expected == response:
        return True
    if not (expected.startswith("{") and response.startswith("{")):
        return False
    should, does = notation.parse(expected), notation.parse(response)
    if exchange.api is not None and exchange.api.key == ApiKey.API_VERSIONS:
        _forget_unserved(should, does)
    return _is_equal(should, does)


def _forget_unserved(should: Any, does: Any) -> None:
    """Compare only what Ottla supports; docs/apis.md and docs/gaps.md list APIs and features."""
    served = {row.split()[0]: int(row.split("-")[1]) for row in does.get("api_keys", [])}
    rows = []
    for row in should.get("api_keys", []):
        key, first, last = row.replace("-", " ").split()
        if key in served:
            rows.append(f"{key} {first}-{min(int(last), served[key])}")
    if rows:
        should["api_keys"] = rows
    for field in ("supported_features", "finalized_features"):
        names = {feature["name"] for feature in does.get(field, [])}
        known = [feature for feature in should.pop(field, []) if feature["name"] in names]
        if known:
            should[field] = known


def _is_equal(should: Any, does: Any) -> bool:
    """Compare values; Ottla may have an error message where Kafka has no message."""
    match should, does:
        case dict(), dict():
            more = does.keys() - should.keys()
            return (
                more <= TEXTS
                and should.keys() <= does.keys()
                and all(_is_equal(item, does[key]) for key, item in should.items())
            )
        case list(), list():
            return len(should) == len(does) and all(map(_is_equal, should, does))
    return type(should) is type(does) and should == does
