"""Errors of an application's topics, reported before it starts Spark."""

from pathlib import Path

import pytest

from ottla.streams import StreamsBuilder, TopologyError
from ottla.streams.application.topic_checks import check_topics
from ottla.streams.settings.handlers import (
    ExceptionHandlers,
    LogAndContinueProductionExceptionHandler,
)
from ottla.testing import Cluster
from tests.unit.streams.test_kafka_streams import new_app


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
    app = new_app(builder.build(), ottla_cluster.bootstrap, tmp_path)
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
    app = new_app(builder.build(), ottla_cluster.bootstrap, tmp_path)
    with pytest.raises(TopologyError, match="source topics gone, lost are not there: create them"):
        app.start()
    app.close()


def test_joined_topics_of_different_sizes_are_rejected_at_the_start(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """The error is the same as in the test driver and is raised before Spark starts."""
    for name, count in (("a", 2), ("b", 3)):
        ottla_cluster.create_topic(name, partitions=count)
    builder = StreamsBuilder()
    builder.stream("a").join(builder.table("b"), max)
    app = new_app(builder.build(), ottla_cluster.bootstrap, tmp_path)
    with pytest.raises(TopologyError, match=r"a has 2, b has 3; send one of them through .*=3"):
        app.start()
    app.close()
