"""A console with a schema registry: values are shown, searched, in SQL, followed, and produced."""

import html
import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from ottla.client.schemas.catalogue import SchemaCatalogue
from ottla.client.schemas.values import SchemaValues
from ottla.console.accounts.roles import Role
from ottla.console.model.messages.masking import MaskingRule
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from ottla.testing.schema_registry import FakeSchemaRegistry
from tests.console.session import PASSWORD, ConsoleSession
from tests.unit.client.schemas.registered import (
    register_avro,
    register_json,
    register_json_with_reference,
    register_protobuf,
)

pytestmark = pytest.mark.slow
EVENT = '{"id": 7, "source": {"db": "shop"}, "at": "2026-01-31T12:00:00+00:00"}'
CITY = b'\0\0\0\0\x05{"id": 7, "city": "Praha"}'


@pytest.fixture(scope="module")
def registry() -> Iterator[FakeSchemaRegistry]:
    """Return a registry with a schema of each kind."""
    with FakeSchemaRegistry() as running:
        register_avro(running, "avro-value")
        register_protobuf(running, "proto-value")
        register_json(running, "city-value")
        register_json_with_reference(running, "visit-value")
        yield running


@pytest.fixture(scope="module")
def cluster(registry: FakeSchemaRegistry) -> Iterator[Cluster]:
    """Return a broker with a topic of each kind."""
    values = SchemaValues(SchemaCatalogue(registry.url))
    with Cluster() as running:
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for topic in ("avro", "proto"):
            running.create_topic(topic)
            event = EVENT.replace("+00:00", "Z") if topic == "proto" else EVENT
            producer.produce(topic, values.write(f"{topic}-value", event))
        running.create_topic("visit")
        running.create_topic("city")
        producer.produce("city", CITY)
        producer.flush(10)
        yield running


def server_of(cluster: Cluster, registry_url: str = "") -> ConsoleServer:
    """Return a console, which the caller starts."""
    settings = ClusterSettings("local", cluster.bootstrap, schema_registry=registry_url)
    return ConsoleServer(
        ConsoleSettings((settings,), ":memory:", port=0, first_password=PASSWORD, sample_s=3600)
    )


@pytest.fixture(scope="module")
def console(cluster: Cluster, registry: FakeSchemaRegistry) -> Iterator[ConsoleServer]:
    """Return a console with the registry."""
    server = server_of(cluster, registry.url)
    server.start()
    server.console.users.create("viewer", PASSWORD, Role.VIEWER, must_change=False)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def admin(console: ConsoleServer) -> ConsoleSession:
    """Return a session of the admin."""
    session = ConsoleSession(console.url)
    session.login("admin", PASSWORD)
    return session


@pytest.mark.parametrize(
    ("topic", "kind"), [("avro", "AVRO, schema 2"), ("proto", "PROTOBUF, sch")]
)
def test_values_are_shown_with_their_schema_and_found_by_fields(
    admin: ConsoleSession, topic: str, kind: str
) -> None:
    """In the list, on the page of the record, in a search, and in SQL."""
    base = f"/c/local/topics/{topic}"
    listed = admin.get(f"{base}/messages").text
    assert "&#34;db&#34;: &#34;shop&#34;" in listed
    assert kind in listed
    page = admin.get(f"{base}/messages/0/0").text
    assert "shop" in page
    assert kind in page
    stored = admin.get(f"{base}/messages/0/0?value_format=hex").text
    assert "(hex, " in stored
    query = "?seek=oldest&where=%24.source.db+%3D%3D+%22shop%22"
    found = [
        data for name, data in admin.events(f"{base}/search.events{query}") if name == "records"
    ]
    assert [data["count"] for data in found] == [1]
    missed = admin.get(f"{base}/messages?where=%24.source.db+%3D%3D+%22other%22").text
    assert "No record matches." in missed
    answer = admin.post("/c/local/sql", "run", {"sql": f"SELECT source.db FROM {topic}"}).text
    assert ">shop</td>" in answer


def test_json_schema_needs_no_registry(cluster: Cluster) -> None:
    """The list shows the text and the id, and a search by a field finds it."""
    server = server_of(cluster)
    server.start()
    try:
        session = ConsoleSession(server.url)
        session.login("admin", PASSWORD)
        base = "/c/local/topics/city"
        listed = session.get(f"{base}/messages?where=%24.city+%3D%3D+%22Praha%22").text
        assert "Praha" in listed
        missed = session.get(f"{base}/messages?where=%24.city+%3D%3D+%22Brno%22").text
        assert "No record matches." in missed
        assert "JSON, schema 5" in listed
        assert "Schemas" not in listed
        answer = session.post("/c/local/sql", "run", {"sql": "SELECT city FROM city"}).text
        assert ">Praha</td>" in answer
        assert session.get("/c/local/schemas").status == 404
    finally:
        server.stop()


def test_a_value_is_produced_with_the_latest_schema(
    admin: ConsoleSession, cluster: Cluster, registry: FakeSchemaRegistry
) -> None:
    """A value that does not fit is refused with the reason; a record is sent again byte by byte."""
    page = "/c/local/topics/avro/produce"
    form = {"value": EVENT.replace("7", "8"), "value_format": "schema", "key_format": "null"}
    sent = admin.post(page, "send", form)
    assert (sent.alert, sent.status) == ("", 200)
    assert "&#34;id&#34;: 8" in admin.get("/c/local/topics/avro/messages/0/1").text
    refused = admin.post(page, "send", {**form, "value": '{"id": "x"}'})
    assert "is not of the type long" in refused.alert
    absent = admin.post("/c/local/topics/city/produce", "send", {**form, "key_format": "schema"})
    assert "city-key" in absent.alert
    again = admin.get(f"{page}?from=0:0").text
    data = SchemaValues(SchemaCatalogue(registry.url)).write("avro-value", EVENT)
    assert data.hex() in again


def test_json_schema_with_references_is_shown_searched_and_produced(admin: ConsoleSession) -> None:
    """A value has to match the schema and the one that it refers to."""
    base = "/c/local/topics/visit"
    value = '{"at": "noon", "city": {"id": 7, "city": "Praha"}}'
    form = {"value": value, "value_format": "schema", "key_format": "null"}
    sent = admin.post(f"{base}/produce", "send", form)
    assert (sent.alert, sent.status) == ("", 200)
    wrong = admin.post(f"{base}/produce", "send", {**form, "value": value.replace("7", "true")})
    assert "$.city.id: True is not of type" in html.unescape(wrong.alert)
    listed = admin.get(f"{base}/messages?where=%24.city.city+%3D%3D+%22Praha%22").text
    assert "JSON, schema " in listed
    assert "Praha" in listed
    assert "Praha" in admin.get(f"{base}/messages/0/0").text
    statement = "SELECT visit.city.city FROM visit"
    assert ">Praha</td>" in admin.post("/c/local/sql", "run", {"sql": statement}).text
    page = admin.get("/c/local/schema?id=visit-value").text
    assert "id=city&amp;version=1" in page


def test_masked_fields_of_decoded_values_stay_masked(
    console: ConsoleServer, admin: ConsoleSession
) -> None:
    """In each format: the stored bytes would have the field, too."""
    masking = console.console.masking
    masking.add(MaskingRule("avro", "value", "$.source.db"))
    try:
        viewer = ConsoleSession(console.url)
        viewer.login("viewer", PASSWORD)
        for path in ("messages", "messages/0/0", "messages/0/0?value_format=hex"):
            text = viewer.get(f"/c/local/topics/avro/{path}").text
            assert "shop" not in text
            assert b"shop".hex() not in text
        row = json.loads(
            viewer.get("/c/local/topics/avro/messages.jsonl?seek=oldest").text.split("\n")[0]
        )
        assert json.loads(row["value"])["source"] == {"db": "******"}
        assert "shop" in admin.get("/c/local/topics/avro/messages/0/0").text
    finally:
        masking.delete(masking.all()[0].id)


def test_subjects_and_schemas_are_shown(admin: ConsoleSession) -> None:
    """Each subject has its versions, its id and links to what it refers to."""
    listed = admin.get("/c/local/schemas").text
    for subject in ("avro-value", "proto-value", "city-value", "shop.Source"):
        assert f">{subject}</a>" in listed
    assert ">city-value</a>" not in admin.get("/c/local/schemas?q=avro").text
    page = admin.get("/c/local/schema?id=avro-value").text
    assert "AVRO" in page
    assert "id=shop.Source&amp;version=1" in page
    assert admin.get("/c/local/schema?id=absent").status == 404
    assert admin.get("/c/local/schema?id=avro-value&version=9").status == 404
