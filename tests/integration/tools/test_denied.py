"""Errors of authorization name the user, the operation, the resource, and the command to allow it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client.admin import offsets
from ottla.testing import Cluster
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow

_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_OPTIONS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_LOGIN} user_ann="secret";',
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": "0",
}
_CLIENT = f"""\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config={_LOGIN} username="ann" password="secret";
"""
# Rights that one command may lack, one after the other.
_STEPS_MAX = 12
_COMMAND = re.compile(r"ask an administrator for `ottla (acl add [^`]+)`")


@pytest.fixture(name="guarded")
def _guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Run a cluster with the topic t and the group g; the user ann runs the commands."""
    config = tmp_path / "client.properties"
    config.write_text(_CLIENT)
    with Cluster(options=_OPTIONS) as cluster:
        cluster.create_topic("t", partitions=1)
        produce(cluster, "t", [b"1", b"2"])
        with cluster.admin() as brokers:
            offsets.commit_offsets(brokers, "g", {("t", 0): offsets.CommittedOffset(1)})
        monkeypatch.setenv("OTTLA_COMMAND_CONFIG", str(config))
        yield cluster


@pytest.mark.parametrize(
    "line",
    [
        "produce t",
        "consume t -e",
        "consume t -e -G g",
        "topic create u",
        "topic describe t",
        "topic config t --set retention.ms=1000",
        "topic add-partitions t --total 2",
        "topic copy t u",
        "topic trim t --to end --yes",
        "topic search t --value 1",
        "topic delete t --yes",
        "group describe g",
        "group reset g --to start --topic t --execute",
        "group delete g --yes",
        "transaction producers t",
        "cluster move t --to 1",
        "quota set --user u --set request_percentage=5",
        "acl add --topic x --allow-principal User:u",
        "metrics set s --interval 30s",
        "streams reset --application-id app --execute",
        "log dirs",
        "perf produce t --records 2",
        "perf latency t --records 2",
        "perf verifiable-consume t --group g --records 1",
    ],
)
def test_suggested_commands_are_all_that_is_needed(
    line: str, run_alone: Any, guarded: Cluster
) -> None:
    """Each command of an administrator allows one operation more, until the verb succeeds."""
    secured = guarded.bootstrap_of("SASL_PLAINTEXT")
    commands: list[str] = []
    done = run_alone(*line.split(), "--bootstrap", secured, stdin=b"line\n")
    while done.code:
        (command,) = _COMMAND.findall(done.errors)
        assert command not in commands, done.errors
        assert "User:ann is denied the operation" in done.errors
        commands.append(command)
        assert len(commands) <= _STEPS_MAX, commands
        arguments = [*shlex.split(command), "--bootstrap", guarded.bootstrap]
        assert run_alone(*arguments, "--command-config", "/dev/null").code == 0
        done = run_alone(*line.split(), "--bootstrap", secured, stdin=b"line\n")
    assert commands
