"""Errors that an application reports before it starts Spark, without a broker."""

import time
import traceback
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.client.errors import NotReachable
from ottla.streams import (
    KeyQuery,
    StateQueryRequest,
    StreamsBuilder,
    StreamsError,
    Topology,
    TopologyError,
)
from ottla.streams.kafka_streams import KafkaStreams, State

_NOWHERE = "127.0.0.1:1"
_UNSTARTED = r"the application is CREATED, not RUNNING, after 0 s: call start\(\)"


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
    with pytest.raises(TimeoutError, match=_UNSTARTED):
        app.await_idle(0)
    with pytest.raises(TimeoutError, match=_UNSTARTED):
        app.await_running(0)
    assert app.close()
    with pytest.raises(StreamsError, match="was closed before it was idle"):
        app.await_idle(10)


_ENGINES = pytest.mark.parametrize("engine", ["spark", "local"])


@_ENGINES
@pytest.mark.parametrize("topology", [StreamsBuilder(), None, StreamsBuilder().stream("in")])
def test_an_object_that_is_no_topology_is_rejected(
    topology: Any, engine: str, tmp_path: Path
) -> None:
    """The constructor raises, with the call that is missing."""
    with pytest.raises(
        TypeError, match=r"runs a Topology, which builder\.build\(\) returns; not a"
    ):
        new_app(topology, _NOWHERE, tmp_path, engine=engine)


@_ENGINES
def test_bootstrap_servers_are_a_text_or_a_list(engine: str, tmp_path: Path) -> None:
    """A list is accepted, as by Producer and Consumer; the constructor refuses other values."""
    topology = counting()
    listed: Any = ["127.0.0.1:1", "127.0.0.1:2"]
    app = new_app(topology, listed, tmp_path, engine=engine)
    with pytest.raises(NotReachable, match=r"127\.0\.0\.1:[12]"):
        app.start()
    assert app.close()
    number: Any = 9092
    with pytest.raises(ConfigError, match="9092 is not a text or a list of texts: write host:port"):
        new_app(topology, number, tmp_path, engine=engine)


@_ENGINES
@pytest.mark.parametrize(
    ("store", "sentence"),
    [
        (
            "counts",
            r"store counts cannot be read before the application is started: call start\(\)",
        ),
        ("count", r"no store count; the topology has: counts; did you mean counts\?"),
    ],
)
def test_a_store_that_cannot_be_read_is_reported_at_once(
    store: str, sentence: str, engine: str, tmp_path: Path
) -> None:
    """The call does not wait for an application that has not been started."""
    app = new_app(counting(), _NOWHERE, tmp_path, engine=engine)
    started = time.monotonic()
    with pytest.raises(StreamsError, match=sentence):
        app.store(store)
    with pytest.raises(StreamsError, match=sentence):
        app.query(StateQueryRequest.in_store(store).with_query(KeyQuery.with_key("key")))
    assert time.monotonic() - started < 30
    assert app.close()


@_ENGINES
@pytest.mark.parametrize("setting", ["set_state_listener", "set_uncaught_exception_handler"])
def test_an_async_listener_is_rejected(setting: str, engine: str, tmp_path: Path) -> None:
    """No engine awaits its result."""

    async def listen(*_: Any) -> None:
        """Ignore the state."""

    app = new_app(counting(), _NOWHERE, tmp_path, engine=engine)
    with pytest.raises(TypeError, match="cannot be the async function 'listen'"):
        getattr(app, setting)(listen)
    assert app.close()


def counting() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count("counts")
    return builder.build()


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
