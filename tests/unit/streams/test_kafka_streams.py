"""Errors that an application reports before it starts Spark, most of them without a broker."""

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


def test_a_topology_without_a_source_is_rejected(tmp_path: Path) -> None:
    """It would run for ever without work; Kafka Streams rejects it, too."""
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


def test_an_unwritable_state_dir_is_rejected(tmp_path: Path) -> None:
    """The error is raised before Spark starts."""
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
def test_a_misspelt_bootstrap_servers_is_reported(options: Any) -> None:
    """The misspelt option is reported rather than the missing one."""
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


def test_an_unreachable_broker_is_one_error(tmp_path: Path) -> None:
    """The error has the address and the fix, without the socket's error and the client's frames."""
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
    """A broker without automatic topic creation."""
    return {"auto.create.topics.enable": "false"}


def test_a_missing_sink_topic_is_rejected_at_the_start(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """This does not apply if the application has a production exception handler."""
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


def test_missing_source_topics_are_rejected_at_the_start(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """The error is raised before Spark starts."""
    builder = StreamsBuilder()
    builder.stream(["gone", "lost"]).to("out")
    app = _app(builder.build(), ottla_cluster.bootstrap, tmp_path)
    with pytest.raises(TopologyError, match="source topics gone, lost are not there: create them"):
        app.start()
    app.close()


def test_joined_topics_of_different_sizes_are_rejected_at_the_start(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """The error is that of the test driver and is raised before Spark starts."""
    for name, count in (("a", 2), ("b", 3)):
        ottla_cluster.create_topic(name, partitions=count)
    builder = StreamsBuilder()
    builder.stream("a").join(builder.table("b"), max)
    app = _app(builder.build(), ottla_cluster.bootstrap, tmp_path)
    with pytest.raises(TopologyError, match=r"a has 2, b has 3; send one of them through .*=3"):
        app.start()
    app.close()
