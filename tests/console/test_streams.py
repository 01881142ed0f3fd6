"""Pages and API of stream applications: published and uploaded topologies, instances, lag."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.client.admin.offsets import PROGRESS, CommittedOffset, commit_offsets
from ottla.console.model.groups import GroupRow
from ottla.console.server import ConsoleServer
from ottla.console.streams.applications import select_applications
from ottla.streams import KafkaStreams, StreamsBuilder
from ottla.streams.application.election import Candidate, Election, ElectionSettings
from ottla.streams.application.published_topology import encode_topology
from ottla.testing import Cluster
from tests.console.session import PASSWORD, ConsoleSession
from tests.unit.console.streams.test_describe_text import WORDS

pytestmark = pytest.mark.slow

_WAIT_S = 60.0
API = "/api/v1/clusters/local/streams"


@pytest.fixture(scope="module")
def application(cluster: Cluster, console: ConsoleServer) -> Iterator[str]:
    """Run the election of an application that counts words and is 2 records behind."""
    cluster.create_topic("words")
    cluster.create_topic("counter-counts-changelog")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(6):
        producer.produce("words", f"{number}")
    assert producer.flush(10) == 0
    with cluster.admin() as brokers:
        progress = CommittedOffset(4, metadata=PROGRESS)
        commit_offsets(brokers, "counter", {("words", 0): progress})
    builder = StreamsBuilder()
    builder.stream("words").group_by_key().count().to_stream().to("counts")
    topology = encode_topology(str(builder.build().describe()))
    elected = threading.Event()
    candidate = Candidate("first", 1_700_000_000_000, "host-a:80", topology=topology)
    election = Election(
        ElectionSettings(cluster.bootstrap, "counter", heartbeat_interval_ms=50),
        candidate,
        elected.set,
    )
    election.start()
    assert elected.wait(20)
    # The console may have read the metadata before there was a topic.
    console.console.clusters.get("local").forget()
    yield "counter"
    election.stop()


def test_a_running_application_publishes_its_topology(
    admin: ConsoleSession, application: str
) -> None:
    """The page draws nodes, topics and stores, with the lag at the topic and the instance's role."""
    listed = admin.get("/c/local/streams").text
    assert f">{application}</a>" in listed
    page = admin.get(f"/c/local/stream?id={application}").text
    assert "A running instance has published this topology." in page
    assert "KSTREAM-AGGREGATE-" in page
    assert "KSTREAM-AGGREGATE-STATE-STORE" in page
    assert "lag 2" in page
    assert "host-a:80" in page
    assert "Running" in page
    assert 'class="badge good">active' in page
    rate = admin.get(f"/c/local/stream/rate.json?id={application}").json
    assert rate["values"] == {"records/s": 4}


def test_the_api_returns_an_application(admin: ConsoleSession, application: str) -> None:
    """Lag, instances, own topics and the text of the topology."""
    row = admin.get(f"{API}/{application}").json
    assert (row["state"], row["lag"], row["topology_source"]) == ("Running", 2, "published")
    assert row["own_topics"] == ["counter-counts-changelog"]
    assert row["instances"][0]["instance"] == "first"
    assert row["topology_text"].startswith("Topologies:")
    names = [item["name"] for item in admin.get(API).json["items"]]
    assert names == sorted(names)
    assert application in names
    assert admin.get(f"{API}/nowhere").status == 404


def test_a_topology_is_uploaded_and_deleted(admin: ConsoleSession) -> None:
    """An application of Kafka Streams has the drawing of the text that its developer pastes."""
    refused = admin.post("/c/local/streams", "upload", {"application": "java-app", "text": "hello"})
    assert "Line 1 of the description" in refused.alert
    done = admin.post("/c/local/streams", "upload", {"application": "java-app", "text": WORDS})
    assert done.notice == "The topology is stored."
    assert "A user has uploaded this topology" in done.text
    assert "by-key-repartition" in done.text
    assert "java-app" in admin.get("/c/local/streams").text
    assert "topology.upload" in admin.get("/audit").text
    gone = admin.post("/c/local/stream?id=java-app", "delete")
    assert gone.notice == "The topology is deleted."
    assert admin.get("/c/local/stream?id=java-app").status == 404


def test_viewers_do_not_upload(console: ConsoleServer) -> None:
    """A viewer sees no form, and a request of theirs is refused."""
    viewer = ConsoleSession(console.url)
    viewer.login("viewer", PASSWORD)
    assert "<textarea" not in viewer.get("/c/local/streams").text
    form = {"application": "other", "text": WORDS}
    assert viewer.post("/c/local/streams", "upload", form).status == 403


def test_hostile_metadata_of_a_member_is_ignored(cluster: Cluster, admin: ConsoleSession) -> None:
    """A member whose topology is no text, or expands without end, has a page without it."""
    for number, topology in enumerate(("%%%", encode_topology("x" * 10_000_000))):
        elected = threading.Event()
        settings = ElectionSettings(cluster.bootstrap, f"hostile{number}")
        election = Election(settings, Candidate("<b>x", 1, topology=topology), elected.set)
        election.start()
        try:
            assert elected.wait(20)
            page = admin.get(f"/c/local/stream?id=hostile{number}")
            assert page.status == 200
            assert "has not published its topology" in page.text
            assert "<b>x" not in page.text
        finally:
            election.stop()


def test_a_local_application_shows_the_tasks_of_its_workers(
    cluster: Cluster, admin: ConsoleSession, tmp_path: Path
) -> None:
    """Its kind, its topology, and the names of its tasks come from its own group."""
    cluster.create_topic("local-words", partitions=2)
    builder = StreamsBuilder()
    builder.stream("local-words").group_by_key().count(materialized="counts")
    with KafkaStreams(
        builder.build(),
        application_id="local-counter",
        bootstrap_servers=cluster.bootstrap,
        engine="local",
        state_dir=str(tmp_path),
        application_server="host-b:80",
    ) as app:
        app.await_idle(_WAIT_S)
        assert "Ottla (local)" in admin.get("/c/local/streams").text
        page = admin.get("/c/local/stream?id=local-counter").text
        assert "0_0 0_1" in page
        assert "host-b:80" in page
        assert "A running instance has published this topology." in page
        (row,) = admin.get(f"{API}/local-counter").json["instances"]
        assert (row["role"], row["tasks"], row["standbys"]) == ("active", ["0_0", "0_1"], [])


def test_applications_are_found_among_groups() -> None:
    """By the election's group, the assignor of Kafka Streams, or the type of KIP-1071."""

    def row(
        name: str, protocol: str = "consumer", kind: str = "classic", assignor: str = "range"
    ) -> GroupRow:
        return GroupRow(name, "Stable", protocol, kind, 1, ("t",), 1, 5, assignor=assignor)

    groups = [
        row("plain"),
        row("java", assignor="stream"),
        row("newer", kind="streams"),
        row("ours-drivers", protocol="ottla-streams", assignor="active-driver"),
        row("ours"),
        row("here", assignor="ottla-streams"),
    ]
    rows = [(item.name, item.kind, item.lag) for item in select_applications(groups)]
    assert rows == [
        ("here", "local", 5),
        ("java", "kafka", 5),
        ("newer", "kafka", 5),
        ("ours", "ottla", 5),
    ]
