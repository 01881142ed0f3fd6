"""Sending a record again: rights, masked fields, other topics and partitions, wrong input."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from tests.console.session import PASSWORD, ConsoleSession

pytestmark = pytest.mark.slow

MESSAGE = "/c/local/topics/orders/messages/0/1"
FORM = "/c/local/topics/orders/produce?from=0:1"
FIELDS = {"value_format": "text", "value": "v"}


def ends(cluster: Cluster) -> list[int]:
    """Return the end of each partition of the topics."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    keys = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("payments", 0)]
    results = admin.list_offsets({key: OffsetSpec.latest() for key in keys})
    return [results[key].result(10).offset for key in keys]


def session_of(console: ConsoleServer, user: str) -> ConsoleSession:
    """Return a session of one of the users."""
    session = ConsoleSession(console.url)
    session.login(user, PASSWORD)
    return session


@pytest.fixture
def masked(console: ConsoleServer) -> Iterator[ConsoleServer]:
    """Return the console with a rule that hides a field of the topic."""
    admin = session_of(console, "admin")
    rule = {"topics": "orders", "target": "value", "path": "$.order.card"}
    admin.post("/users", "add-rule", rule)
    yield console
    (stored,) = console.console.masking.all()
    console.console.masking.delete(stored.id)


def test_editors_send_records_again(console: ConsoleServer) -> None:
    """The record, each row of the list, and each row of a search have the link."""
    editor = session_of(console, "editor")
    for path in (MESSAGE, "/c/local/topics/orders/messages?limit=20"):
        assert "/topics/orders/produce?from=0:1" in editor.get(path).text
    found = [data for name, data in editor.events("/c/local/topics/orders/search.events?seek=oldest")
             if name == "records"]  # fmt: skip
    assert "/topics/orders/produce?from=0:1" in found[0]["html"]


def test_viewers_do_not_send_records_again(console: ConsoleServer, cluster: Cluster) -> None:
    """They have no link; a form that they send anyway is refused, and nothing is written."""
    before, viewer = ends(cluster), session_of(console, "viewer")
    assert "produce?from=" not in viewer.get(MESSAGE).text
    assert "produce?from=" not in viewer.get("/c/local/topics/orders/messages").text
    assert viewer.post(FORM, "send", FIELDS).status == 403
    assert ends(cluster) == before


def test_nothing_is_sent_again_in_read_only_mode(cluster: Cluster) -> None:
    """Not even an admin has the link, and the form is refused."""
    clusters = (ClusterSettings("local", cluster.bootstrap),)
    server = ConsoleServer(
        ConsoleSettings(clusters, ":memory:", port=0, is_read_only=True, first_password=PASSWORD)
    )
    server.start()
    try:
        before, admin = ends(cluster), session_of(server, "admin")
        assert "produce?from=" not in admin.get(MESSAGE).text
        response = admin.post(FORM, "send", FIELDS)
        assert response.status == 403
        assert "read-only" in response.text
        assert ends(cluster) == before
    finally:
        server.stop()


def test_a_masked_record_is_sent_again_by_admins_only(masked: ConsoleServer) -> None:
    """The marks in place of hidden fields are never offered as a value to write."""
    response = session_of(masked, "editor").get(FORM)
    assert response.status == 403
    assert "masked fields" in response.alert
    assert "ask an admin" in response.alert
    assert "***" not in response.text
    assert "4000-0002" in session_of(masked, "admin").get(FORM).text


def test_the_same_key_chooses_the_partition_of_another_topic(
    console: ConsoleServer, cluster: Cluster
) -> None:
    """The audit log names the topic that was written to."""
    before, admin = ends(cluster), session_of(console, "admin")
    fields = FIELDS | {"topic": "payments", "partition": "", "key": "k", "key_format": "text"}
    response = admin.post(FORM, "send", fields)
    assert "partition 0" in response.notice
    after = ends(cluster)
    assert (after[:2], after[2]) == (before[:2], before[2] + 1)
    entry = console.console.audit.entries(limit=1)[0]
    assert (entry.action, entry.target) == ("topic.produce", "payments")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"topic": "absent"}, "There is no topic 'absent'"),
        ({"topic": "payments", "partition": "1"}, "has no partition 1: the last one is 0."),
        ({"partition": "-1"}, "the least is 0"),
        ({"partition": "x"}, "a whole number is needed"),
        ({"headers": '"id": {"hex": "f"}'}, "the header 'id' 'f' does not have the format hex"),
        ({"headers": '"id": 1'}, "cannot read header"),
        ({"key_format": "hex", "key": "zz"}, "does not have the format hex"),
        ({"value_format": "avro"}, "unknown format 'avro'"),
    ],
    ids=str,
)
def test_wrong_input_is_refused_and_nothing_is_written(
    console: ConsoleServer, cluster: Cluster, fields: dict[str, str], sentence: str
) -> None:
    """The form is shown again with one sentence that says what is wrong."""
    before, admin = ends(cluster), session_of(console, "admin")
    response = admin.post(FORM, "send", FIELDS | fields)
    assert sentence.lower() in response.alert.lower()
    assert ends(cluster) == before


@pytest.mark.parametrize("position", ["x", "0", "0:", "0:x", "0:99999", "9:0", "0:²"])
def test_a_record_that_does_not_exist_is_reported(console: ConsoleServer, position: str) -> None:
    """The page is the empty form, with the reason."""
    response = session_of(console, "admin").get(FORM.replace("0:1", quote(position)))
    assert response.status in (400, 404)
    assert response.alert
    assert "Produce to orders" in response.text


def test_a_form_stays_usable_if_its_record_was_deleted(
    console: ConsoleServer, cluster: Cluster
) -> None:
    """What was written is reported although the record of the address is gone."""
    cluster.create_topic("fleeting")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce("fleeting", b"v")
    producer.flush()
    admin = session_of(console, "admin")
    admin.post("/c/local/topics/fleeting", "empty", {"confirmation": "fleeting"})
    response = admin.post("/c/local/topics/fleeting/produce?from=0:0", "send", FIELDS)
    assert "at offset 1" in response.notice
