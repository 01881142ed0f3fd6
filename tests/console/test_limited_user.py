"""A console whose user in the cluster may only read: pages show what it may see, and say the rest."""

from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from tests.console.conftest import fill
from tests.console.session import PASSWORD, ConsoleSession

pytestmark = pytest.mark.slow

OPTIONS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SECURED://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
    ' username="reader" password="reader-secret";',
}
TOPIC = "/c/local/topics/orders"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a broker whose user reader may read the topic orders and the group billing."""
    with Cluster(options=OPTIONS) as running:
        fill(running)
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        secret = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        user = UserScramCredentialUpsertion("reader", secret, b"reader-secret")
        for future in admin.alter_user_scram_credentials([user]).values():
            future.result(10)
        rights = [
            AclBinding(
                kind, name, ResourcePatternType.LITERAL, "User:reader", "*",
                AclOperation.READ, AclPermissionType.ALLOW,
            )
            for kind, name in ((ResourceType.TOPIC, "orders"), (ResourceType.GROUP, "billing"))
        ]  # fmt: skip
        for future in admin.create_acls(rights).values():
            future.result(10)
        yield running


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[ConsoleSession]:
    """Return a session of the console's admin, which is another user than the cluster's."""
    settings = ClusterSettings("local", cluster.bootstrap_of("SECURED"), LOGIN)
    server = ConsoleServer(
        ConsoleSettings((settings,), ":memory:", port=0, first_password=PASSWORD, timeout_s=3.0)
    )
    server.start()
    session = ConsoleSession(server.url)
    session.login("admin", PASSWORD)
    yield session
    server.stop()


@pytest.mark.parametrize(
    "path",
    [
        "/c/local/overview",
        "/c/local/brokers",
        "/c/local/topics",
        TOPIC,
        f"{TOPIC}/messages",
        f"{TOPIC}/messages/0/0",
        f"{TOPIC}/consumers",
        f"{TOPIC}/partitions",
        f"{TOPIC}/partitions/0",
        f"{TOPIC}/statistics?scan=10000",
        f"{TOPIC}/produce",
        "/c/local/groups",
        "/c/local/group?id=billing",
        "/c/local/group/offsets?id=billing",
    ],
)
def test_a_page_shows_what_the_user_may_see(admin: ConsoleSession, path: str) -> None:
    """One right that is missing hides one number, not the page."""
    response = admin.get(path)
    assert response.status == 200, response.alert
    assert "authorization" not in response.text.lower()


def test_what_the_user_may_not_see_is_unknown(admin: ConsoleSession) -> None:
    """A default would be a lie: the options of the topic, and moves, are a dash."""
    text = " ".join(admin.get(TOPIC).text.split())
    assert "<dt>Cleanup policy</dt><dd>–</dd>" in text
    assert "<dt>Retention by time</dt><dd>–</dd>" in text
    assert "<dt>Being reassigned</dt><dd>–</dd>" in admin.get("/c/local/overview").text
    broker = admin.get("/c/local/brokers/1").text
    assert "<dt>Size</dt><dd>–</dd>" in broker
    assert "The log directories are unknown" in broker


@pytest.mark.parametrize(
    "path",
    [
        f"{TOPIC}/settings",
        "/c/local/brokers/1/settings",
        "/c/local/brokers/defaults",
        "/c/local/reassignments",
        "/c/local/acls",
        "/c/local/quotas",
    ],
)
def test_a_page_without_the_right_says_what_to_do(admin: ConsoleSession, path: str) -> None:
    """The sentence names the user of the console, and where it is set."""
    response = admin.get(path)
    assert response.status == 403
    assert "The principal may not" in response.alert
    assert "give that user an ACL" in response.alert
    assert "--command-config" in response.alert


def test_a_change_without_the_right_changes_nothing(
    admin: ConsoleSession, cluster: Cluster
) -> None:
    """The form is shown again with the sentence; the topic has the same records."""
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    key = TopicPartition("orders", 0)

    def end() -> int:
        offset: int = client.list_offsets({key: OffsetSpec.latest()})[key].result(10).offset
        return offset

    before = end()
    for path, action, form in (
        (f"{TOPIC}/produce", "send", {"value": "x", "partition": "0"}),
        (TOPIC, "trim", {"partition": "0", "offset": "5"}),
        (TOPIC, "grow", {"total": "5"}),
        ("/c/local/create-topic", "create", {"name": "other"}),
        (TOPIC, "delete", {"confirmation": "orders"}),
    ):
        response = admin.post(path, action, form)
        assert response.status == 403, (path, action, response.alert)
        assert "give that user an ACL" in response.alert
        assert "<form" in response.text
    assert end() == before
    assert set(client.list_topics(timeout=10).topics) >= {"orders"}
    assert "other" not in client.list_topics(timeout=10).topics


def test_the_deletion_of_an_acl_and_of_a_user_says_what_is_lost(cluster: Cluster) -> None:
    """The page warns if no other ACL allows the same; another name than the user's is refused."""
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    ann = AclBinding(
        ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:ann", "*",
        AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip
    client.create_acls([ann])[ann].result(10)
    settings = (ClusterSettings("local", cluster.bootstrap),)
    server = ConsoleServer(ConsoleSettings(settings, ":memory:", port=0, first_password=PASSWORD))
    server.start()
    try:
        session = ConsoleSession(server.url)
        session.login("admin", PASSWORD)
        page = session.get("/c/local/acls").text
        assert "User:ann loses what only this ACL allows, at once." in page
        assert "reader can no longer log in with SCRAM-SHA-256" in page
        # Only one user may read the group; two may read the topic.
        assert page.count("No other ACL allows this operation on this resource") == 1
        fields = {
            "resource_type": "topic", "resource_name": "orders", "pattern_type": "literal",
            "principal": "User:ann", "host": "*", "operation": "read", "permission": "allow",
        }  # fmt: skip
        wrong = session.post("/c/local/acls", "delete-acl", {**fields, "confirmation": "ann"})
        assert "type its principal" in wrong.alert
        user = {"user": "reader", "mechanism": "SCRAM-SHA-256", "confirmation": "rader"}
        assert "type the user" in session.post("/c/local/acls", "delete-user", user).alert
        right = session.post("/c/local/acls", "delete-acl", {**fields, "confirmation": "User:ann"})
        assert right.notice == "The ACL is deleted."
        page = session.get("/c/local/acls").text
        assert page.count("No other ACL allows this operation on this resource") == 2
        assert "reader" in page
    finally:
        server.stop()


def test_templates_create_the_acls_of_an_application(cluster: Cluster) -> None:
    """The preview shows each ACL and whether it exists; missing ones are created once."""
    settings = (ClusterSettings("local", cluster.bootstrap),)
    server = ConsoleServer(ConsoleSettings(settings, ":memory:", port=0, first_password=PASSWORD))
    server.start()
    try:
        session = ConsoleSession(server.url)
        session.login("admin", PASSWORD)
        page = "/c/local/acls"
        form = {"template": "consumer", "principal": "User:app", "topics": "in", "groups": "team"}
        shown = session.post(page, "show-template", form).text
        assert shown.count("<td>read</td>") - session.get(page).text.count("<td>read</td>") == 2
        assert "User:app" not in session.get(page).text
        assert session.post(page, "add-template", form).notice == "3 ACLs are created."
        assert session.post(page, "add-template", form).notice == "These ACLs exist already."
        wider = {
            **form, "template": "transactional", "topics": "out", "transactional_ids": "app-",
            "pattern_type": "prefixed",
        }  # fmt: skip
        assert session.post(page, "add-template", wider).notice == "7 ACLs are created."
        assert "transactional-id <code>app-*</code>" in session.get(page).text
        missing = session.post(page, "show-template", {**wider, "transactional_ids": ""})
        assert "'transactional_ids' is empty" in missing.alert
        nameless = session.post(page, "show-template", {**form, "principal": "app"})
        assert "principalType:principalName" in nameless.alert
        (entry, *_) = server.console.audit.entries(text="acl.create")
        assert entry.details["topic out write"] == "– → allow from * (prefixed)"
    finally:
        server.stop()
