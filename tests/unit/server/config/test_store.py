"""The config store: precedence of the layers, live changes, and invalid settings."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.cluster.options import option_tables
from ottla.cluster.zk.embedded import EmbeddedSession, EmbeddedTree
from ottla.cluster.znodes import ConfigChangeNode, ConfigNode
from ottla.server.config.store import ConfigSource, ConfigStore, Described
from ottla.server.handlers import produce
from ottla.storage.log.validation import Vetted
from tests.handlers.logs import LogsBroker
from tests.handlers.test_produce import heavy
from tests.handlers.test_produce import request as produce_request

TOPICS, BROKERS, DEFAULT = ConfigNode.TOPICS, ConfigNode.BROKERS, ConfigNode.DEFAULT


class Tree:
    """A tree with settings, and a store of broker 1 that reads them."""

    def __init__(self) -> None:
        self.tree = EmbeddedTree(RealFileSystem(), RealClock())
        self.session = self.tree.session()
        self.tasks = Tasks()
        self.static: dict[str, str] = {}

    async def write(self, entity_type: str, entity: str, **settings: str) -> None:
        """Store settings (dots as underscores) without a notification."""
        path = ConfigNode.path(entity_type, entity)
        await self.session.ensure(path)
        config = {name.replace("_", "."): value for name, value in settings.items()}
        await self.session.set(path, ConfigNode.encode(config))

    async def announce(self, entity_type: str, entity: str) -> None:
        """Write a notification of a change."""
        await self.session.ensure(ConfigChangeNode.PARENT)
        content = ConfigChangeNode.encode(f"{entity_type}/{entity}")
        await self.session.create(ConfigChangeNode.PREFIX, content, sequential=True)

    async def change(self, entity_type: str, entity: str, **settings: str) -> None:
        """Store settings as a controller does."""
        await self.write(entity_type, entity, **settings)
        await self.announce(entity_type, entity)

    async def store(self) -> ConfigStore:
        """Return a config store that has started."""
        config_store = ConfigStore(
            option_tables.parse_broker_settings(self.static).snapshot, 1, self.tasks
        )
        await config_store.start(self.tree.session())
        return config_store


@pytest.fixture
async def tree() -> AsyncIterator[Tree]:
    """Return a tree in memory."""
    created = Tree()
    yield created
    await created.tasks.close()
    await created.tree.close()


async def until(condition: Callable[[], bool]) -> None:
    """Run the other tasks until the condition is true."""
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


def retention(store: ConfigStore) -> Described:
    """Return how the store describes retention.ms of the topic `t`."""
    (row,) = [item for item in store.describe_topic("t") if item.row.name == "retention.ms"]
    return row


async def test_most_specific_setting_applies(tree: Tree) -> None:
    """The order is topic, this broker, all brokers, static configuration, default."""
    tree.static = {"log.retention.ms": "4"}
    layers = [
        (BROKERS, DEFAULT, "log_retention_ms", 3, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (BROKERS, "1", "log_retention_ms", 2, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (TOPICS, "t", "retention_ms", 1, ConfigSource.DYNAMIC_TOPIC_CONFIG),
    ]
    sources = [ConfigSource.DEFAULT_CONFIG, ConfigSource.STATIC_BROKER_CONFIG]
    assert retention(await tree.store()).source is ConfigSource.STATIC_BROKER_CONFIG
    for entity_type, entity, name, value, source in layers:
        await tree.write(entity_type, entity, **{name: str(value)})
        store = await tree.store()
        sources.append(source)
        assert store.topic("t")["retention.ms"] == value
        option = retention(store)
        assert (option.value, option.source) == (str(value), source)
        assert [item.source for item in option.synonyms] == sources[::-1]


async def test_another_brokers_settings_are_not_this_brokers(tree: Tree) -> None:
    """Only the broker's own settings and the settings of all brokers apply."""
    await tree.write(BROKERS, "2", log_retention_ms="5")
    store = await tree.store()
    assert store.broker["log.retention.ms"] is None


async def test_a_topic_without_settings_shares_the_defaults(tree: Tree) -> None:
    """Ten thousand topics do not need ten thousand snapshots."""
    store = await tree.store()
    assert store.topic("a") is store.topic("b")


async def test_change_of_a_topic_is_reported_with_its_new_options(tree: Tree) -> None:
    """The notification makes the store read the topic again and report its new options."""
    store = await tree.store()
    changes: list[tuple[str, int]] = []

    def note(topic: str, snapshot: Snapshot) -> None:
        changes.append((topic, snapshot["retention.ms"]))

    store.on_topic.append(note)
    await tree.change(TOPICS, "t", retention_ms="5")
    await until(lambda: bool(changes))
    await tree.change(TOPICS, "t")
    await until(lambda: len(changes) == 2)
    assert changes == [("t", 5), ("t", 604_800_000)]


async def test_a_change_of_the_broker_changes_topics_that_set_nothing(tree: Tree) -> None:
    """Defaults change, and a topic's own value stays."""
    await tree.write(TOPICS, "own", retention_ms="1")
    store = await tree.store()
    changes: list[Snapshot] = []
    store.on_broker.append(changes.append)
    await tree.change(BROKERS, DEFAULT, log_retention_ms="7", max_connections="3")
    await until(lambda: bool(changes))
    assert changes[0] is store.broker
    assert store.broker["max.connections"] == 3
    assert store.topic("t")["retention.ms"] == 7
    assert store.topic("own")["retention.ms"] == 1


async def test_a_change_of_the_broker_does_not_refuse_a_heavy_batch(
    tree: Tree, broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option that does not affect records changes while the batch is validated: once is enough."""
    await tree.write(TOPICS, "t", cleanup_policy="compact")
    store = await tree.store()
    await store.load_topics(["t"])
    broker.create("t")
    replicas = broker.replicas
    monkeypatch.setattr(replicas, "_topic_options", store.topic)
    replicas.update_configs()
    store.on_broker.append(lambda _: replicas.update_configs())
    log, validate, calls = broker.partition("t").log, broker.heavy_batches.validate, 0

    async def change_and_validate(*of_batch: Any) -> Vetted:
        nonlocal calls
        calls += 1
        vetted = await validate(*of_batch)
        await tree.change(BROKERS, DEFAULT, log_retention_ms=str(calls))
        await until(lambda: log.config.retention_ms == calls)
        return vetted

    monkeypatch.setattr(broker.heavy_batches, "validate", change_and_validate)
    response = await broker.ask(produce, produce_request(broker, bytearray(heavy())), 9)
    assert response.responses[0].partition_responses[0].error_code == 0
    assert (log.log_end_offset, calls) == (3000, 1)


async def test_consecutive_changes_are_all_applied(tree: Tree) -> None:
    """No notification is lost between two reads."""
    store = await tree.store()
    for value in range(50):
        await tree.change(TOPICS, f"t{value % 5}", retention_ms=str(value))
    await until(lambda: store.topic("t4")["retention.ms"] == 49)
    followed = {name: store.topic(name)["retention.ms"] for name in ("t0", "t1", "t2", "t3")}
    assert followed == {"t0": 45, "t1": 46, "t2": 47, "t3": 48}


async def test_notifications_from_before_the_start_are_ignored(tree: Tree) -> None:
    """The start reads all settings, so it ignores older notifications."""
    await tree.change(TOPICS, "t", retention_ms="5")
    store = await tree.store()
    changes: list[str] = []
    store.on_topic.append(lambda topic, _: changes.append(topic))
    await tree.change(TOPICS, "u", retention_ms="6")
    await until(lambda: bool(changes))
    assert changes == ["u"]
    assert store.topic("t")["retention.ms"] == 5


async def test_notification_without_a_change_is_not_reported(tree: Tree) -> None:
    """A notification without a change does not rebuild the configuration of a log."""
    await tree.write(TOPICS, "t", retention_ms="5")
    store = await tree.store()
    changes: list[str] = []
    store.on_topic.append(lambda topic, _: changes.append(topic))
    await tree.announce(TOPICS, "t")
    await tree.announce("users", "alice")
    await tree.change(TOPICS, "last", retention_ms="1")
    await until(lambda: bool(changes))
    assert changes == ["last"]


async def test_settings_of_a_new_topic_are_read_before_its_log_is_created(tree: Tree) -> None:
    """A new topic has no notification: the broker reads its settings before it becomes the leader."""
    store = await tree.store()
    await tree.write(TOPICS, "t", retention_ms="5")
    await store.load_topics(["t"])
    assert store.topic("t")["retention.ms"] == 5
    store.forget_topics(["t"])
    assert store.topic("t")["retention.ms"] == 604_800_000


async def test_invalid_setting_is_logged_and_ignored(
    tree: Tree, caplog: pytest.LogCaptureFixture
) -> None:
    """A broken setting, or one of a newer version, does not keep the broker from starting."""
    await tree.write(TOPICS, "t", retention_ms="x", future_option="1", segment_ms="5")
    await tree.write(BROKERS, DEFAULT, nobody_knows="1")
    with caplog.at_level(logging.WARNING):
        store = await tree.store()
    assert store.topic("t")["segment.ms"] == 5
    assert store.topic("t")["retention.ms"] == 604_800_000
    assert "topic t" in caplog.text
    assert "future.option" in caplog.text
    assert "nobody.knows" in caplog.text


@pytest.mark.parametrize(
    ("entity", "name"),
    [(DEFAULT, "super_users"), ("1", "ssl_client_auth"), ("1", "listener_name_a_ssl_client_auth")],
)
async def test_security_option_in_the_metadata_stops_the_start(
    tree: Tree, entity: str, name: str
) -> None:
    """A broker of Apache Kafka has stored it; Ottla's would not honour it."""
    await tree.write(BROKERS, entity, **{name: "required"})
    with pytest.raises(ConfigError, match=f"security option {name.replace('_', '.')} of broker"):
        await tree.store()


async def test_security_option_that_appears_later_is_an_error_in_the_log(
    tree: Tree, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker continues with its own."""
    store = await tree.store()
    await tree.change(BROKERS, "1", ssl_client_auth="required")
    await until(lambda: "security option without effect" in caplog.text)
    await tree.change(BROKERS, "1", log_retention_ms="5", ssl_client_auth="required")
    await until(lambda: store.broker["log.retention.ms"] == 5)
    assert "sets the security option ssl.client.auth of broker 1" in caplog.text


async def test_new_session_reads_everything_again(tree: Tree) -> None:
    """Changes from the time without a session are found."""
    store = ConfigStore(option_tables.parse_broker_settings({}).snapshot, 1, tree.tasks)
    lost = tree.tree.session()
    assert isinstance(lost, EmbeddedSession)
    await store.start(lost)
    lost.expire()
    await tree.change(TOPICS, "t", retention_ms="5")
    assert store.topic("t")["retention.ms"] == 604_800_000
    await store.start(tree.tree.session())
    assert store.topic("t")["retention.ms"] == 5
    await tree.change(TOPICS, "t", retention_ms="6")
    await until(lambda: store.topic("t")["retention.ms"] == 6)


async def test_suspended_session_does_not_stop_the_watches(
    tree: Tree, caplog: pytest.LogCaptureFixture
) -> None:
    """The watches are set when the session is back."""
    store = ConfigStore(option_tables.parse_broker_settings({}).snapshot, 1, tree.tasks)
    session = tree.tree.session()
    await store.start(session)
    await tree.change(TOPICS, "t", retention_ms="5")
    # The watch has fired, and the read that follows is interrupted.
    await asyncio.sleep(0)
    session.suspend()
    await until(lambda: "failed to read config changes" in caplog.text)
    assert store.topic("t")["retention.ms"] != 5
    session.resume()
    await until(lambda: store.topic("t")["retention.ms"] == 5)
    await tree.change(TOPICS, "t", retention_ms="6")
    await until(lambda: store.topic("t")["retention.ms"] == 6)


async def test_default_of_all_brokers_lists_only_set_options(tree: Tree) -> None:
    """The default of all brokers is described without static configuration and defaults."""
    await tree.write(BROKERS, DEFAULT, log_retention_ms="7")
    (actual,) = (await tree.store()).describe_broker_default()
    assert (actual.row.name, actual.value) == ("log.retention.ms", "7")
    assert actual.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG


async def test_coarser_name_is_no_synonym_of_an_unset_value(tree: Tree) -> None:
    """The name log.retention.hours is a synonym only if log.retention.ms is set too, like in Kafka."""
    tree.static = {"log.retention.hours": "1"}
    store = await tree.store()
    (row,) = [item for item in store.describe_broker() if item.row.name == "log.retention.ms"]
    assert (row.value, row.source) == (None, ConfigSource.DEFAULT_CONFIG)
    assert row.synonyms == []
    assert (retention(store).value, retention(store).source) == (
        "3600000",
        ConfigSource.DEFAULT_CONFIG,
    )
    tree.static = {"log.retention.ms": "5", "log.retention.hours": "1"}
    (row,) = [
        item
        for item in (await tree.store()).describe_broker()
        if item.row.name == "log.retention.ms"
    ]
    assert [(item.name, item.value) for item in row.synonyms] == [
        ("log.retention.ms", "5"),
        ("log.retention.hours", "1"),
        ("log.retention.hours", "168"),
    ]


async def test_settings_of_a_future_topic_are_described(
    tree: Tree,
) -> None:
    """CreateTopics returns the settings that the topic will have."""
    store = await tree.store()
    entries = {item.row.name: item for item in store.describe_settings({"retention.ms": "5"})}
    assert entries["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert entries["segment.ms"].source is ConfigSource.DEFAULT_CONFIG


async def test_entities_are_reported_at_the_start_and_on_change(tree: Tree) -> None:
    """Listeners get users, their clients, client ids, addresses and subscriptions, also removed
    ones.
    """
    written = [
        (ConfigNode.USERS, "alice"),
        (ConfigNode.USERS, "bob/clients/<default>"),
        (ConfigNode.CLIENTS, "app"),
        (ConfigNode.IPS, "10.0.0.1"),
        (ConfigNode.CLIENT_METRICS, "all"),
    ]
    for number, (entity_type, path) in enumerate(written):
        await tree.write(entity_type, path, value=str(number))
    store = ConfigStore(option_tables.parse_broker_settings({}).snapshot, 1, tree.tasks)
    reported: dict[tuple[str, str], dict[str, str]] = {}

    def note(entity_type: str, path: str, settings: Mapping[str, str]) -> None:
        reported[entity_type, path] = dict(settings)

    store.on_entity.append(note)
    await store.start(tree.tree.session())
    assert reported == {entity: {"value": str(number)} for number, entity in enumerate(written)}
    assert store.entities(ConfigNode.CLIENTS) == {"app": {"value": "2"}}
    await tree.change(ConfigNode.CLIENTS, "app", value="9")
    await until(lambda: reported[ConfigNode.CLIENTS, "app"] == {"value": "9"})
    # A new session reports nothing twice, and reports what was removed.
    reported.clear()
    await tree.session.delete(ConfigNode.path(ConfigNode.USERS, "alice"))
    await store.start(tree.tree.session())
    assert reported == {(ConfigNode.USERS, "alice"): {}}


async def test_broker_options_that_are_not_known_are_described_without_values(
    tree: Tree, caplog: pytest.LogCaptureFixture
) -> None:
    """They are logged once, are read-only as in Kafka, and do not hinder the others."""
    await tree.write(BROKERS, DEFAULT, no_such="1", no_other="2")
    await tree.write(BROKERS, "1", no_such="3", log_retention_ms="70000")
    store = await tree.store()
    await store.refresh(BROKERS, "1")
    rows = {row.row.name: row for row in store.describe_broker()}
    own, default = ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert [synonym[1:] for synonym in rows["no.such"].synonyms] == [(None, own), (None, default)]
    assert (rows["no.such"].value, rows["no.such"].is_read_only) == (None, True)
    assert rows["no.other"].source is default
    assert rows["log.retention.ms"].value == "70000"
    assert [row.row.name for row in store.describe_broker_default()] == ["no.other", "no.such"]
    assert caplog.text.count("unknown broker option has no effect") == 3
