"""Delegation tokens of Ottla's brokers: our clients, Java's, and Apache Kafka in the same cluster."""

import base64
import contextlib
import dataclasses
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ErrorCode
from ottla.client import AdminClient
from ottla.client.admin.apache.delegation_tokens import DelegationToken
from ottla.client.errors import NotReachable
from ottla.cluster.token_znodes import TokenNode
from ottla.cluster.zk import tree_login
from ottla.testing import Cluster
from ottla.testing.process import COMMAND, BrokerProcess, run_command
from ottla.tools.broker.processes import free_port
from tests.compat import java, zookeeper
from tests.compat.scripts import record, test_replay
from tests.compat.scripts.test_replay import Done, compare
from tests.compat.scripts.transcript import FOLDER, read

pytestmark = [pytest.mark.compat, pytest.mark.slow]

_MODULES = "org.apache.kafka.common.security"
_LISTENER = "listener.name.sasl_plaintext"
SECURED = {
    "delegation.token.secret.key": "secret",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    f"{_LISTENER}.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required "
    'user_ann="secret" user_ben="secret";',
}
_PAUSE = threading.Event()
_PATIENCE_S = 20.0


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait until a change has reached the other broker."""
    deadline = RealClock().monotonic() + _PATIENCE_S
    while not is_true():
        assert RealClock().monotonic() < deadline
        _PAUSE.wait(0.02)


def user(address: str, name: str = "ann") -> AdminClient:
    """Return a client that logs in with PLAIN."""
    return AdminClient(
        {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required "
            f'username="{name}" password="secret";',
        }
    )


def by_token(token: DelegationToken, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
    """Return the options of a client that logs in with a token."""
    password = base64.b64encode(token.hmac).decode()
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required "
        f'username="{token.token_id}" password="{password}" tokenauth="true";',
    }


def is_accepted(address: str, token: DelegationToken, mechanism: str = "SCRAM-SHA-512") -> bool:
    """Return True if a client can log in with a token and send a request."""
    settings = {"bootstrap.servers": address, **by_token(token, mechanism)}
    try:
        with AdminClient(settings, default_api_timeout_ms=2000) as admin:
            return bool(admin.describe_cluster().cluster_id)
    except (ApiError, NotReachable):
        return False


@contextlib.contextmanager
def secured_cluster(folder: Path, brokers: int = 1) -> Iterator[tuple[Cluster, list[str]]]:
    """Run a cluster whose brokers issue tokens; yields it, and the addresses for users."""
    options = SECURED | {"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"}
    with Cluster(brokers=brokers, options=options, data=folder) as cluster:
        endpoints = [
            broker.endpoint("SASL_PLAINTEXT")
            for _, broker in sorted(cluster.node(1).broker.image.brokers.items())
        ]
        yield cluster, [f"{row.host}:{row.port}" for row in endpoints if row is not None]


def test_token_of_one_broker_counts_at_the_others(tmp_path: Path) -> None:
    """A client logs in, and a renewer renews, at the broker that has not issued it."""
    with (
        secured_cluster(tmp_path, brokers=2) as (_, (first, second)),
        user(first) as ann,
        user(second, "ben") as ben,
    ):
        token = ann.create_delegation_token(renewers=["User:ben"], max_lifetime_ms=3_600_000)
        wait_until(lambda: ben.describe_delegation_tokens() == [token])
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            assert is_accepted(second, token, mechanism)
        expiry_ms = ben.renew_delegation_token(token.hmac, period_ms=60_000)
        wait_until(lambda: ann.describe_delegation_tokens()[0].expiry_ms == expiry_ms)
        ann.expire_delegation_token(token.hmac)
        wait_until(lambda: not is_accepted(second, token))


def test_client_with_a_token_requests_no_token(tmp_path: Path) -> None:
    """It may do all else that its owner may do."""
    with secured_cluster(tmp_path) as (_, (address,)), user(address) as ann:
        token = ann.create_delegation_token()
        settings = {"bootstrap.servers": address, **by_token(token)}
        with AdminClient(settings) as admin:
            assert admin.describe_cluster().cluster_id
            with pytest.raises(ApiError) as caught:
                admin.create_delegation_token()
            assert caught.value.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_connection_ends_with_its_token(tmp_path: Path) -> None:
    """The broker closes it at the first request after that, and the token logs in no more."""
    with secured_cluster(tmp_path) as (_, (address,)), user(address) as ann:
        token = ann.create_delegation_token(max_lifetime_ms=700)
        assert is_accepted(address, token)
        wait_until(lambda: not is_accepted(address, token))


def test_tokens_outlive_a_restart(tmp_path: Path) -> None:
    """They are in the tree, without their HMACs."""
    with secured_cluster(tmp_path) as (cluster, (address,)):
        with user(address) as ann:
            token = ann.create_delegation_token()
        cluster.restart()
        endpoint = cluster.node(1).broker.image.brokers[1].endpoint("SASL_PLAINTEXT")
        assert endpoint is not None
        assert is_accepted(f"{endpoint.host}:{endpoint.port}", token)


@pytest.mark.needs("java")
@pytest.mark.slow
def test_tool_of_apache_kafka_prints_the_same_with_ottla(tmp_path: Path) -> None:
    """The recorded session of 4.3.0, with Apache Kafka's tool and Ottla's broker.

    One of its users logs in with a token. Commands that Ottla's broker refuses are left out.
    """
    transcript = read(FOLDER / "delegation_tokens.txt")
    (tmp_path / "log4j.properties").write_text("log4j.rootLogger=OFF\n")
    tools = record.Tools(tmp_path, transcript.version)
    differences: list[str] = []
    with contextlib.closing(tools), test_replay.places_of(transcript, tmp_path) as places:
        for command in transcript.commands:
            if "A" in command.marks:
                continue
            recorded = dataclasses.replace(command)
            tools.run(command, places)
            out, errors = "\n".join(command.out), "\n".join(command.errors)
            differences += compare(recorded, Done(command.code, out, errors), places)
    assert not differences, "\n".join(differences)


@pytest.mark.needs("java")
@pytest.mark.slow
def test_apache_kafka_in_the_same_cluster_shares_the_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apache Kafka 3.9.2 and Ottla issue, read and renew the tokens of one tree, in one form."""
    login = tree_login.java_options(f"{tmp_path}/tree")
    monkeypatch.setenv("KAFKA_OPTS", login)
    tree = f"127.0.0.1:{free_port(is_any=True)}"
    ours, theirs = (f"127.0.0.1:{port}" for port in java.free_ports(2))
    options = {"coordination.listener": tree, "node.id": "7"}
    with BrokerProcess(tmp_path / "tree", options=options), contextlib.ExitStack() as stack:
        tree = f"{tree}/shared"
        kafka = _apache_kafka(tmp_path / "theirs", tree, theirs)
        kafka.java_options = (login,)
        kafka.start()
        try:
            # After it, so that the cluster has no features which Apache Kafka 3.9 lacks.
            stack.enter_context(_ottla(tmp_path, tree, ours))
            with user(ours) as ann, user(theirs, "ben") as ben:
                first = ben.create_delegation_token(renewers=["User:ann", "User:x,y=z*"])
                second = ann.create_delegation_token(renewers=["User:ben"], max_lifetime_ms=10**6)
                for admin in (ann, ben):
                    wait_until(
                        lambda: admin.describe_delegation_tokens() == [first, second]  # noqa: B023
                    )
                for address in (ours, theirs):
                    assert is_accepted(address, first)
                    assert is_accepted(address, second)
                data = _content(tree, first)
                assert TokenNode.encode(TokenNode.decode("", data)) == data
                expiry_ms = ann.renew_delegation_token(first.hmac, period_ms=60_000)
                assert ben.expire_delegation_token(second.hmac) > 0
                (expected,) = ann.describe_delegation_tokens(["User:x,y=z*"])
                assert expected.expiry_ms == expiry_ms
                for admin in (ann, ben):
                    wait_until(lambda: admin.describe_delegation_tokens() == [expected])  # noqa: B023
                assert not is_accepted(ours, second)
                # Apache Kafka issues a token to an owner of another type, who is then a user.
                group = ben.create_delegation_token(owner=("Group", "ben"), renewers=["User:ben"])
                wait_until(lambda: group in ann.describe_delegation_tokens())
                assert not is_accepted(ours, group)
                with pytest.raises(ApiError) as refused:
                    ann.create_delegation_token(owner=("Group", "ben"))
                assert refused.value.code is ErrorCode.INVALID_PRINCIPAL_TYPE
                assert ben.expire_delegation_token(group.hmac) > 0
            assert outcomes(ours) == outcomes(theirs)
        finally:
            kafka.stop()


def outcomes(address: str) -> list[object]:
    """Return a broker's response: errors, owners, and the times of tokens from their creation."""
    answers: list[object] = []

    def note(attempt: Callable[[], object]) -> None:
        try:
            answers.append(attempt())
        except ApiError as error:
            answers.append(error.code)

    def times(admin: AdminClient, **fields: Any) -> tuple[object, ...]:
        token = admin.create_delegation_token(**fields)
        lives = token.expiry_ms - token.issue_ms, token.max_ms - token.issue_ms
        return token.owner, token.requester, token.renewers, len(token.hmac), *lives

    with user(address) as ann, user(address, "ben") as ben:
        for lifetime_ms in (-2, 0, 1000, 86_400_000, 10**15):
            note(lambda: times(ann, max_lifetime_ms=lifetime_ms))  # noqa: B023
        for fields in ({"owner": ("User", "")}, {"owner": "User:eve"}):
            note(lambda: times(ann, **fields))  # noqa: B023
        note(lambda: times(ann, renewers=["Group:x"]))
        token = ann.create_delegation_token()
        for admin in (ann, ben):
            for hmac in (b"", b"unknown", token.hmac):
                note(lambda: admin.renew_delegation_token(hmac) - token.issue_ms > 0)  # noqa: B023
        note(lambda: ben.expire_delegation_token(token.hmac))
        note(lambda: ann.expire_delegation_token(token.hmac, period_ms=0) > 0)
        # Expired a moment later, and deleted by its owner all the same.
        wait_until(lambda: RealClock().time_ms() > token.issue_ms + 1000)
        note(lambda: ann.renew_delegation_token(token.hmac))
        note(lambda: ann.expire_delegation_token(token.hmac, period_ms=5))
        note(lambda: ben.expire_delegation_token(token.hmac, period_ms=5))
        note(lambda: ann.expire_delegation_token(token.hmac) > 0)
        note(lambda: ann.expire_delegation_token(token.hmac))
    return answers


@contextlib.contextmanager
def _ottla(folder: Path, tree: str, address: str) -> Iterator[None]:
    """Run a broker of this tree; Apache Kafka's brokers cannot prove what they are."""
    rows = SECURED | {
        "node.id": "8",
        "log.dirs": str(folder / "ours"),
        "zookeeper.connect": tree,
        "inter.broker.authentication": "none",
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port(is_any=True)},SASL_PLAINTEXT://{address}",
    }
    config = folder / "server.properties"
    config.write_text("".join(f"{name}={text}\n" for name, text in rows.items()))
    command = [*COMMAND, "broker", "start", "--config", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def _apache_kafka(folder: Path, tree: str, address: str) -> zookeeper.Broker:
    broker = zookeeper.Broker(folder, tree)
    scram = f"{_MODULES}.scram.ScramLoginModule required;"
    rows = SECURED | {
        f"{_LISTENER}.scram-sha-{bits}.sasl.jaas.config": scram for bits in (256, 512)
    }
    rows["listeners"] = f"PLAINTEXT://{broker.bootstrap},SASL_PLAINTEXT://{address}"
    with (folder / "server.properties").open("a") as file:
        file.writelines(f"{name}={text}\n" for name, text in rows.items())
    return broker


def _content(tree: str, token: DelegationToken) -> bytes:
    """Return the content of the token's node."""
    shell = ("zookeeper", "shell", "--connect", tree)
    return run_command(*shell, "get", TokenNode.path(token.token_id)).stdout.rstrip(b"\n")
