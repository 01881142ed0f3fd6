"""What an application is told before it starts anything: neither Spark nor a broker is needed for that."""

from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.streams import StreamsBuilder, TopologyError
from ottla.streams.app import KafkaStreams, State

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
