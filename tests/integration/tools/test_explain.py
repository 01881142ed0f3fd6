"""`--explain` prints the requests of every verb that has it, and changes nothing else."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client.admin import configs, offsets
from ottla.client.admin.configs import Resource, ResourceType
from ottla.testing import Cluster
from tests.integration.tools.test_mirror import produce
from tests.unit.tools.test_every_verb import COMMANDS, WORDS

pytestmark = pytest.mark.slow

_EXPLAINED = [
    name
    for name, command in COMMANDS.items()
    if any(parameter.name == "explain" for parameter in command.params)
]
# Words for a topic `t#`, which has two records, a group `g#`, and a subscription `m#`; # is another
# number for each run.
# FILE has a line of JSON, NEW does not exist. Spark is needed only for topics that exist.
_WORDS = {
    "produce": "t# FILE",
    "consume": "t# -e",
    "topic create": "u#",
    "topic describe": "t#",
    "topic config": "t# --set retention.ms=1000",
    "topic add-partitions": "t# --total 9",
    "topic delete": "t# --yes",
    "topic search": "t# --value 1",
    "topic copy": "t# u#",
    "topic trim": "t# --to end --yes",
    "topic load": "missing FILE",
    "topic export": "missing NEW",
    "group describe": "g#",
    "group reset": "g# --to-earliest --topic t#",
    "group delete": "g# --yes",
    "cluster move": "t# --to 1",
    "quota set": "--user u# --set request_percentage=5",
    "streams describe": "g#",
    "streams reset": "--application-id g#",
    "pipeline check": "PIPELINE --bootstrap BROKER",
    "perf produce": "t# --records 2",
    "perf consume": "t#",
    "perf latency": "t# --records 2",
    "perf verifiable-produce": "t# --records 2",
    "perf verifiable-consume": "t# --group h# --records 2",
    "metrics delete": "m# --yes",
    "debug bundle": "NEW",
}
_PIPELINE = """\
name: one
sources: {{all: {{topic: {0}}}}}
sinks: {{copy: {{from: all, topic: {0}}}}}
"""
_NUMBERS = itertools.count()
_REQUEST = re.compile(r"\S+ <- [A-Z][A-Za-z]+ v\d+ \(.*")


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[Cluster]:
    with Cluster(options={"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


def _run(run: Any, cluster: Cluster, name: str, folder: Path, *more: str) -> Any:
    """Run a verb with a topic, a group and a subscription of its own."""
    number = str(next(_NUMBERS))
    topic, file = f"t{number}", folder / f"file{number}"
    file.write_text('{"a": 1}\n')
    cluster.create_topic(topic, partitions=1)
    produce(cluster, topic, [b"1", b"2"])
    with cluster.admin() as brokers:
        place = offsets.CommittedOffset(1)
        offsets.commit_offsets(brokers, f"g{number}", {(topic, 0): place})
        subscription = Resource(ResourceType.CLIENT_METRICS, f"m{number}")
        configs.alter_config(brokers, subscription, assign={"interval.ms": "30000"})
    # The words of other verbs are complete, too; what they name does not exist.
    words = (
        _WORDS.get(name, " ".join(WORDS.get(name, [])))
        .replace("#", number)
        .replace("FILE", str(file))
    )
    words = words.replace("NEW", str(folder / f"new{number}"))
    pipeline = folder / "pipeline.yaml"
    pipeline.write_text(_PIPELINE.format(topic))
    words = words.replace("PIPELINE", str(pipeline)).replace("BROKER", cluster.bootstrap)
    return run(*name.split(), *words.split(), *more, "--output", "json")


@pytest.mark.parametrize("name", _EXPLAINED)
def test_requests_of_a_verb_are_printed(
    name: str, run_alone: Any, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard error has at least one request; the rest of it, the exit code and the kind of
    standard output are those without the option.
    """
    monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
    plain = _run(run_alone, cluster, name, tmp_path)
    explained = _run(run_alone, cluster, name, tmp_path, "--explain")
    lines = explained.errors.splitlines()
    requests = [line for line in lines if _REQUEST.fullmatch(line)]
    assert requests, explained.errors
    others = [line for line in lines if line not in requests]
    assert not any(map(_REQUEST.fullmatch, plain.errors.splitlines()))
    assert list(map(_shape, others)) == list(map(_shape, plain.errors.splitlines()))
    assert (explained.code, _kind(explained.out)) == (plain.code, _kind(plain.out))


def _shape(line: str) -> str:
    return re.sub(r"\d+", "N", line)


def _kind(out: bytes) -> list[str]:
    """Return the types of the JSON values, which are on one line each or one text."""
    text = out.decode()
    try:
        return [type(json.loads(text)).__name__] if text else []
    except ValueError:
        return [type(json.loads(line)).__name__ for line in text.splitlines()]


def test_requests_to_the_target_of_a_copy_are_printed(
    run_alone: Any, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ottla topic copy --to` names both clusters."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
    cluster.create_topic("source", partitions=1)
    with Cluster() as other:
        done = run_alone("topic", "copy", "source", "--to", other.bootstrap, "--explain")
        assert (done.code, other.topics()) == (0, ["source", "source.mirror-offsets"])
        for address in (cluster.bootstrap, other.bootstrap):
            assert f"{address} <- Metadata v" in done.errors
