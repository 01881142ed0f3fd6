"""What an application is told before it starts anything: neither Spark nor a broker is needed for that."""

import traceback
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.client.errors import NotReachable
from ottla.streams import StreamsBuilder, Topology, TopologyError
from ottla.streams.application.topic_checks import check_topics
from ottla.streams.kafka_streams import KafkaStreams, State
from ottla.streams.settings.handlers import (
    ExceptionHandlers,
    LogAndContinueProductionExceptionHandler,
)
from ottla.testing import Cluster

_NOWHERE = "127.0.0.1:1"


def test_a_topology_without_a_source_is_refused(tmp_path: Path) -> None:
    """It would run for ever and do nothing, as in Kafka Streams, which refuses it, too."""
    app = KafkaStreams(
        StreamsBuilder().build(),
        application_id="app",
        bootstrap_servers=_NOWHERE,
        state_dir=str(tmp_path),
    )
    with pytest.raises(TopologyError, match="the topology reads nothing: give it a source"):
        app.start()
    assert app.close()
    assert app.state is State.NOT_RUNNING


def test_a_state_dir_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Before Spark starts."""
    (tmp_path / "file").write_text("")
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    app = KafkaStreams(
        builder.build(),
        application_id="app",
        bootstrap_servers=_NOWHERE,
        state_dir=str(tmp_path / "file"),
    )
    with pytest.raises(ConfigError, match="state_dir cannot be"):
        app.start()
    assert app.close()


@pytest.mark.parametrize(
    "options", [{"bootstrap_server": _NOWHERE}, {"config": {"bootstrap.server": _NOWHERE}}]
)
def test_a_missing_bootstrap_servers_that_was_written_wrongly_is_suggested(options: Any) -> None:
    """The slip is reported, not the option that is missing because of it."""
    with pytest.raises(ConfigError, match=r"bootstrap.server\b.*bootstrap_servers"):
        KafkaStreams(StreamsBuilder().build(), application_id="app", **options)


def _app(topology: Topology, bootstrap: str, folder: Path, **options: Any) -> KafkaStreams:
    return KafkaStreams(
        topology,
        application_id="app",
        bootstrap_servers=bootstrap,
        state_dir=str(folder),
        **options,
    )


def test_a_broker_that_does_not_answer_is_one_error(tmp_path: Path) -> None:
    """The error names the address and what to do; neither the socket's error nor the client's frames are shown."""
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    app = _app(builder.build(), _NOWHERE, tmp_path)
    with pytest.raises(NotReachable) as raised:
        app.start()
    text = "".join(traceback.format_exception(raised.value))
    assert "nothing listens on 127.0.0.1:1 (bootstrap_servers of the application 'app')" in text
    assert "or set bootstrap_servers to one that runs." in text
    assert "Traceback" in text
    assert "ConnectionRefusedError" not in text
    assert "/client/" not in text
    app.close()


@pytest.fixture
def ottla_options() -> dict[str, str]:
    """A broker that creates no topics by itself."""
    return {"auto.create.topics.enable": "false"}


def test_a_sink_topic_that_does_not_exist_is_refused_at_the_start(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """Before Spark starts; a production exception handler of the application's own decides later."""
    ottla_cluster.create_topic("in")
    builder = StreamsBuilder()
    builder.stream("in").to("nowhere")
    app = _app(builder.build(), ottla_cluster.bootstrap, tmp_path)
    with pytest.raises(TopologyError, match="sink topic nowhere is not there: create it"):
        app.start()
    app.close()
    with ottla_cluster.admin() as brokers:
        continues = ExceptionHandlers(production=LogAndContinueProductionExceptionHandler())
        check_topics(brokers, builder.build(), "app", continues)


def test_a_source_topic_that_does_not_exist_is_refused_at_the_start(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """Before Spark starts."""
    builder = StreamsBuilder()
    builder.stream(["gone", "lost"]).to("out")
    app = _app(builder.build(), ottla_cluster.bootstrap, tmp_path)
    with pytest.raises(TopologyError, match="source topics gone, lost are not there: create them"):
        app.start()
    app.close()


def test_joined_topics_of_different_sizes_are_refused_at_the_start(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """With the error of the test driver, before Spark starts."""
    for name, count in (("a", 2), ("b", 3)):
        ottla_cluster.create_topic(name, partitions=count)
    builder = StreamsBuilder()
    builder.stream("a").join(builder.table("b"), max)
    app = _app(builder.build(), ottla_cluster.bootstrap, tmp_path)
    with pytest.raises(TopologyError, match=r"a has 2, b has 3; send one of them through .*=3"):
        app.start()
    app.close()
