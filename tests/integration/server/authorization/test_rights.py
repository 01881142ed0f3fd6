"""Every API and the rights of two principals: the rights of one never apply to the other."""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from ottla.client.admin import acls
from ottla.client.admin.acls import AclBinding, AclOperation, PermissionType
from ottla.cluster.options.authorization_options import AUTHORIZER
from ottla.security.acls import AccessControlEntry, ResourcePattern, ResourceType
from ottla.server.transport.apis import ROWS
from ottla.testing import Cluster
from ottla.wire import headers
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.fields import Message
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.compat.recorded import messages, notation
from tests.compat.recorded.player import Line, Target
from tests.compat.recorded.symbols import Symbols
from tests.integration.server.authorization.rights import CASES, OPEN, Case

USERS = ("ann", "ben")
# The rights of a user: none; describe; every operation; every operation but denied; every operation
# on other resources.
LEVELS = ("none", "describe", "full", "denied", "elsewhere")
_ALLOWED = {("describe", "describe"), ("describe", "full"), ("full", "full")}
_ERROR = re.compile(r"\b[A-Z_]+_AUTHORIZATION_FAILED\b")
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_TYPES = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)
_OPTIONS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{_LOGIN} user_ann="a" user_ben="b" user_seen="s";'
    ),
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "secret",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


class Client:
    """A user that has logged in."""

    def __init__(self, cluster: Cluster, user: str) -> None:
        host, _, port = cluster.bootstrap_of("SASL_PLAINTEXT").rpartition(":")
        self.line = Line(Target(host, int(port)))
        self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
        login = SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{user[0]}".encode())
        assert self.ask(login, 2, SaslAuthenticateResponse).error_code == 0

    def __enter__(self) -> "Client":
        """Return itself, connected."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.line.close()

    def ask(self, request: Message, version: int, response_type: type[Message]) -> Any:
        """Return the response to a request."""
        self.line.send(request, version)
        frame = self.line.receive()
        assert frame is not None, f"no response to {request!r}"
        return headers.decode_response(response_type, version, frame)[1]

    def outcome(self, case: Case) -> str:
        """Return the errors of a response, or the word for one without an error of authorization."""
        version = _newest(case) if case.version is None else case.version
        request = messages.build(case.api.request, version, case.request, Symbols())
        response = self.ask(request, version, case.api.response)
        shown = notation.render(messages.show(response, version, Symbols()))
        errors = ", ".join(sorted(set(_ERROR.findall(shown))))
        if case.error:
            return errors or "allowed"
        return errors or ("allowed" if '"seen"' in shown else "hidden")


def _newest(case: Case) -> int:
    return next(row.handler.MAX_VERSION for row in ROWS if case.api.key == row.handler.API)


def expected(case: Case, level: str) -> str:
    """Return the outcome of a request with these rights."""
    if (case.right, level) in _ALLOWED:
        return "allowed"
    return case.error or "hidden"


def bindings(user: str, level: str) -> list[AclBinding]:
    """Return the entries that give a user its rights."""
    entries = {
        "none": (),
        "describe": ((AclOperation.DESCRIBE, PermissionType.ALLOW, "*"),),
        "full": ((AclOperation.ALL, PermissionType.ALLOW, "*"),),
        "denied": (
            (AclOperation.ALL, PermissionType.ALLOW, "*"),
            (AclOperation.ALL, PermissionType.DENY, "*"),
        ),
        "elsewhere": ((AclOperation.ALL, PermissionType.ALLOW, "elsewhere"),),
    }[level]
    return [
        AclBinding(
            ResourcePattern(kind, "kafka-cluster" if kind is ResourceType.CLUSTER else name),
            AccessControlEntry(f"User:{user}", "*", operation, permission),
        )
        for operation, permission, name in entries
        for kind in _TYPES
        if kind is not ResourceType.CLUSTER or name == "*"
    ]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Run a cluster with a topic, a group, a transactional id and a token of the name `seen`."""
    with Cluster(options=_OPTIONS) as running:
        running.create_topic("seen", partitions=1)
        commit = OffsetCommitRequest(
            group_id="seen",
            topics=[
                OffsetCommitRequestTopic(
                    name="seen", partitions=[OffsetCommitRequestPartition(committed_offset=0)]
                )
            ],
        )
        init = InitProducerIdRequest(transactional_id="seen", transaction_timeout_ms=60_000)
        with running.admin() as brokers:
            brokers.retry(
                lambda: brokers.ask_coordinator("seen", commit, OffsetCommitResponse, max_version=9)
            )
            brokers.retry(
                lambda: brokers.ask_transaction_coordinator("seen", init, InitProducerIdResponse)
            )
        with Client(running, "seen") as owner:
            owner.ask(CreateDelegationTokenRequest(), 3, CreateDelegationTokenResponse)
        yield running


def test_every_api_has_a_case() -> None:
    """A new API needs requests here, or a reason why everyone may use it."""
    assert {ApiKey(case.api.key) for case in CASES} == {row.handler.API for row in ROWS} - OPEN
    assert all(APIS[int(case.api.key)] is case.api for case in CASES)


@pytest.mark.parametrize("of_ann", LEVELS)
def test_rights_of_two_principals(cluster: Cluster, of_ann: str) -> None:
    """Each has the response of its own rights, whatever the rights of the other are."""
    with ExitStack() as stack:
        clients = {user: stack.enter_context(Client(cluster, user)) for user in USERS}
        for of_ben in LEVELS:
            check(cluster, clients, dict(zip(USERS, (of_ann, of_ben), strict=True)))


def check(cluster: Cluster, clients: Mapping[str, Client], levels: Mapping[str, str]) -> None:
    """Check every request of the users with these rights."""
    with cluster.admin() as brokers:
        acls.delete_acls(brokers, [AclBinding()])
        entries = [row for user, level in levels.items() for row in bindings(user, level)]
        acls.create_acls(brokers, entries)
    wrong = [
        f"{user} has {levels[user]}: {case.api.name} {case.request}: {outcome}"
        for case in CASES
        for user, client in clients.items()
        if (outcome := client.outcome(case)) != expected(case, levels[user])
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", [None, "", "User", "user", "User:", "Group", "User:team"])
@pytest.mark.parametrize("name", ["ANONYMOUS", "ann", "ben", "", ":ann", "team:ann"])
def test_user_is_issued_tokens_of_its_own_only(
    cluster: Cluster, kind: str | None, name: str
) -> None:
    """Without a right, no owner that a request can name makes it another user."""
    with cluster.admin() as brokers:
        acls.delete_acls(brokers, [AclBinding()])
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind, owner_principal_name=name, max_lifetime_ms=60_000
    )
    described = DescribeDelegationTokenRequest(owners=None)
    with Client(cluster, "ann") as client:
        response = client.ask(request, 3, CreateDelegationTokenResponse)
        listed = client.ask(described, 3, DescribeDelegationTokenResponse)
    is_own = not name or (kind, name) == ("User", "ann")
    assert (response.error_code == 0) is is_own
    # Tokens for zoe were issued with a right, by the other test.
    owners = {(row.principal_type, row.principal_name) for row in listed.tokens}
    assert owners <= {("User", "ann"), ("User", "zoe")}
