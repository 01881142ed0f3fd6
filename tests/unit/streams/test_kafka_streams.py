"""Errors that an application reports before it starts Spark, without a broker."""

import traceback
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.client.errors import NotReachable
from ottla.streams import StreamsBuilder, StreamsError, Topology, TopologyError
from ottla.streams.kafka_streams import KafkaStreams, State

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


def test_waiting_until_an_application_is_idle_ends_with_its_state(tmp_path: Path) -> None:
    """The error says that the application does not run, or that it was closed."""
    app = new_app(StreamsBuilder().build(), _NOWHERE, tmp_path)
    assert not app.progress().is_idle
    with pytest.raises(TimeoutError, match="the application is CREATED, not RUNNING, after 0 s"):
        app.await_idle(0)
    assert app.close()
    with pytest.raises(StreamsError, match="was closed before it was idle"):
        app.await_idle(10)


@pytest.mark.parametrize(
    "options", [{"bootstrap_server": _NOWHERE}, {"config": {"bootstrap.server": _NOWHERE}}]
)
def test_a_misspelt_bootstrap_servers_is_reported(options: Any) -> None:
    """The misspelt option is reported rather than the missing one."""
    with pytest.raises(ConfigError, match=r"bootstrap.server\b.*bootstrap_servers"):
        KafkaStreams(StreamsBuilder().build(), application_id="app", **options)


def new_app(topology: Topology, bootstrap: str, folder: Path, **options: Any) -> KafkaStreams:
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
    app = new_app(builder.build(), _NOWHERE, tmp_path)
    with pytest.raises(NotReachable) as raised:
        app.start()
    text = "".join(traceback.format_exception(raised.value))
    assert "nothing listens on 127.0.0.1:1 (bootstrap_servers of the application 'app')" in text
    assert "or set bootstrap_servers to one that runs." in text
    assert "Traceback" in text
    assert "ConnectionRefusedError" not in text
    assert "/client/" not in text
    app.close()
