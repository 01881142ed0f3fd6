"""ACLs and SCRAM users of Apache Kafka 4.3.0 through AdminClient and `kafka-acls`."""

import io
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client import AdminClient
from ottla.client.admin.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from ottla.client.admin.scram import (
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    mechanism_of,
)
from ottla_scripts import entry
from tests.compat import java

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,  # Apache Kafka takes seconds to start.
    pytest.mark.needs("java"),
]
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_PATIENCE_S = 15.0


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[java.KafkaNode]:
    """Return Apache Kafka with an authorizer."""
    options = [f"authorizer.class.name={_AUTHORIZER}", "super.users=User:ANONYMOUS"]
    node = java.KafkaNode(tmp_path_factory.mktemp("kafka"), options, "4.3.0")
    node.start()
    try:
        yield node
    finally:
        node.kill()


@pytest.fixture(scope="module")
def bootstrap(node: java.KafkaNode) -> str:
    """Return the address of the broker."""
    return node.bootstrap


@pytest.fixture
def admin(bootstrap: str) -> Iterator[AdminClient]:
    """Return a connected client."""
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        yield admin


def _binding(
    name: str, operation: AclOperation, pattern_type: PatternType = PatternType.LITERAL
) -> AclBinding:
    pattern = ResourcePattern(ResourceType.TOPIC, name, pattern_type)
    return AclBinding(pattern, AccessControlEntry("User:ann", "*", operation, PermissionType.ALLOW))


def _eventually(is_true: Callable[[], bool]) -> bool:
    # A change of metadata is visible a moment after it was confirmed; each round is a request.
    deadline = time.monotonic() + _PATIENCE_S
    while not is_true():
        if time.monotonic() > deadline:
            return False
    return True


def _any_of(name: str, pattern_type: PatternType) -> AclBinding:
    return AclBinding(ResourcePattern(ResourceType.TOPIC, name, pattern_type))


def test_acls_are_created_described_and_deleted(admin: AdminClient) -> None:
    """A filter matches by name, by the prefix of a name, and by operation."""
    read, write = _binding("orders", AclOperation.READ), _binding("orders", AclOperation.WRITE)
    prefixed = _binding("ord", AclOperation.DESCRIBE, PatternType.PREFIXED)
    admin.create_acls([read, write, prefixed])
    # An existing ACL is not an error.
    admin.create_acls([read])
    assert _eventually(lambda: {*admin.describe_acls()} == {read, write, prefixed})
    literal = admin.describe_acls(_any_of("orders", PatternType.LITERAL))
    assert {*literal} == {read, write}
    assert len(admin.describe_acls(_any_of("orders", PatternType.MATCH))) == 3
    only_reads = AclBinding(entry=AccessControlEntry(operation=AclOperation.READ))
    assert admin.delete_acls([only_reads]) == [read]
    assert {*admin.delete_acls([_any_of("orders", PatternType.MATCH)])} == {write, prefixed}
    assert admin.delete_acls([AclBinding()]) == []


def test_invalid_acl_is_rejected_and_others_are_added(admin: AdminClient) -> None:
    """The first rejected ACL determines the error."""
    valid, invalid = _binding("a", AclOperation.READ), _binding("", AclOperation.READ)
    with pytest.raises(ApiError) as caught:
        admin.create_acls([invalid, valid])
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert _eventually(lambda: admin.describe_acls() == [valid])
    assert admin.delete_acls([AclBinding()]) == [valid]


def test_scram_credentials_are_set_and_deleted(admin: AdminClient) -> None:
    """Iterations are readable; a request changes a user once."""
    sha256, sha512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
    admin.alter_user_scram_credentials(
        [ScramUpsertion("ann", sha256, "secret", 8192), ScramUpsertion("bob", sha512, "secret")]
    )
    expected = {"ann": (ScramCredential(sha256, 8192),), "bob": (ScramCredential(sha512, 4096),)}
    assert _eventually(lambda: admin.describe_user_scram_credentials() == expected)
    assert admin.describe_user_scram_credentials(["bob", "nobody"]) == {"bob": expected["bob"]}
    twice = [ScramUpsertion("ann", sha256, "a"), ScramUpsertion("ann", sha512, "a")]
    with pytest.raises(ApiError) as caught:
        admin.alter_user_scram_credentials(twice)
    assert caught.value.code is ErrorCode.DUPLICATE_RESOURCE
    with pytest.raises(ApiError) as caught:
        admin.alter_user_scram_credentials(deletions=[ScramDeletion("ann", sha512)])
    assert caught.value.code is ErrorCode.RESOURCE_NOT_FOUND
    admin.alter_user_scram_credentials(
        deletions=[ScramDeletion("ann", sha256), ScramDeletion("bob", sha512)]
    )
    assert _eventually(lambda: not admin.describe_user_scram_credentials())


def test_unknown_mechanism_lists_the_known_ones() -> None:
    """The names are SASL's."""
    assert mechanism_of("SCRAM-SHA-512") is ScramMechanism.SCRAM_SHA_512
    with pytest.raises(ConfigError, match="SCRAM-SHA-256, SCRAM-SHA-512"):
        mechanism_of("SCRAM-SHA-1")


@pytest.mark.parametrize(
    ("answer", "is_deleted", "code"), [("y\n", True, 0), ("n\n", False, 0), ("", False, 1)]
)
def test_removal_needs_a_confirmation(
    answer: str,
    is_deleted: bool,
    code: int,
    admin: AdminClient,
    bootstrap: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Only `y` deletes; the end of standard input is no confirmation, and an error."""
    binding = _binding("asked", AclOperation.READ)
    admin.create_acls([binding])
    assert _eventually(lambda: admin.describe_acls() == [binding])
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    words = ["--bootstrap-server", bootstrap, "--remove", "--topic", "asked"]
    assert entry.run("kafka-acls", words) == code
    assert "Are you sure you want to delete all ACLs" in capsys.readouterr().out
    assert _eventually(lambda: (admin.describe_acls() == []) == is_deleted)
    admin.delete_acls([AclBinding()])
    assert _eventually(lambda: not admin.describe_acls())


def test_acls_as_json(
    admin: AdminClient, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--output json` prints a list of objects with the words of Apache Kafka."""
    words = ["--bootstrap-server", bootstrap, "--output", "json"]
    add = ["--add", "--allow-principal", "User:ann", "--operation", "Read", "--topic", "a"]
    assert entry.run("kafka-acls", [*words, *add]) == 0
    row = (
        '{"resource_type": "TOPIC", "name": "a", "pattern_type": "LITERAL", '
        '"principal": "User:ann", "host": "*", "operation": "READ", "permission_type": "ALLOW"}'
    )
    assert capsys.readouterr().out == f"[{row}]\n"
    assert _eventually(lambda: len(admin.describe_acls()) == 1)
    assert entry.run("kafka-acls", [*words, "--remove", "--topic", "a", "--force"]) == 0
    assert capsys.readouterr().out == f"[{row}]\n"


def test_controller_serves_acls(
    node: java.KafkaNode, admin: AdminClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--bootstrap-controller` names the controllers of a KRaft cluster (KIP-919)."""
    words = ["--bootstrap-controller", node.controller, "--topic", "c"]
    add = ["--add", "--allow-principal", "User:ann", "--operation", "Read"]
    assert entry.run("kafka-acls", [*words, *add]) == 0
    assert entry.run("kafka-acls", [*words, "--list"]) == 0
    assert "name=c, patternType=LITERAL)`:\n\t(principal=User:ann" in capsys.readouterr().out
    assert _eventually(lambda: len(admin.describe_acls()) == 1)
    assert entry.run("kafka-acls", [*words, "--remove", "--force"]) == 0
    assert _eventually(lambda: not admin.describe_acls())
