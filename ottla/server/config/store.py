"""Dynamic configuration of this broker: read from the tree, kept current, and described.

A value comes from the first of: the topic's own setting, this broker's, the cluster-wide default
for brokers, the start configuration, the built-in default (KIP-226). Handlers and logs read
snapshots here and never wait; components that have to act on a change register a callback. Follows
kafka.server.DynamicBrokerConfig, ConfigHelper and ZkConfigRepository.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.base.options import Option, OptionType, Scope, Snapshot
from ottla.base.tasks import Tasks
from ottla.cluster.options import group_options, option_tables
from ottla.cluster.options.client_metrics_options import CLIENT_METRICS_OPTIONS
from ottla.cluster.options.group_options import GROUP_OPTIONS
from ottla.cluster.options.option_tables import BROKER_OPTIONS, TOPIC_OPTIONS
from ottla.cluster.options.security import tls_options
from ottla.cluster.zk.port import (
    ConnectionSuspended,
    Coordination,
    NoNode,
    SessionLost,
    SessionState,
)
from ottla.cluster.znodes import ConfigChangeNode, ConfigNode

if TYPE_CHECKING:
    from ottla.cluster.options.security import names as security_names
else:
    # Only names that are not in the table need it.
    security_names = deferred_module("ottla.cluster.options.security.names")

_log = logging.getLogger(__name__)

# Types of entities whose settings have no defaults; users may have clients below them.
_PLAIN_TYPES = (
    ConfigNode.CLIENTS,
    ConfigNode.USERS,
    ConfigNode.IPS,
    ConfigNode.CLIENT_METRICS,
    ConfigNode.GROUPS,
)

# Options for tests and repairs: listed only if they are set, as in Kafka.
_HIDDEN = "internal."


class ConfigSource(IntEnum):
    """The source of a value, by the codes of DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigResource(IntEnum):
    """The types of resources that have options, by the codes of DescribeConfigs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Synonym(NamedTuple):
    """One possible source of a value; None if the value is secret."""

    name: str
    value: str | None
    source: ConfigSource


class Described(NamedTuple):
    """An option in DescribeConfigs: its value, the source of the value, and all other sources."""

    row: Option
    value: str | None
    source: ConfigSource
    synonyms: Sequence[Synonym]
    is_read_only: bool


class ConfigStore:
    """Lives on the broker's loop; `start` again after the session was lost and a new one begun.

    `on_topic` is called for a topic whose own settings changed, `on_broker` for changed broker
    settings, which change the defaults of every topic. `on_entity` is called, with type and path
    below it, for the settings of clients, users, addresses, metrics subscriptions and groups, also
    for those read at the start. `on_own` is called when the settings of this broker are altered,
    also to the same values.
    """

    def __init__(self, static: Snapshot, node_id: int, tasks: Tasks) -> None:
        self.on_topic: list[Callable[[str, Snapshot], None]] = []
        self.on_broker: list[Callable[[Snapshot], None]] = []
        self.on_entity: list[Callable[[str, str, Mapping[str, str]], None]] = []
        self.on_own: list[Callable[[], None]] = []
        self._static = static
        self._node = str(node_id)
        self._tasks = tasks
        self._session: Coordination | None = None
        # Settings as they are written in the tree, without what cannot be used.
        self._brokers: dict[str, dict[str, str]] = {}
        self._unknown = _UnknownOptions()
        self._topics: dict[str, dict[str, str]] = {}
        # Topics whose settings have been read; most topics have no settings.
        self._read: set[str] = set()
        self._entities: dict[tuple[str, str], dict[str, str]] = {}
        self._broker = static
        self._topic_snapshots: dict[str, Snapshot] = {}
        self._topic_default = option_tables.topic_snapshot(static, {})
        # The descriptions of a topic without settings, and of this broker; None if not known.
        self._described_default: list[Described] | None = None
        self._described_broker: list[Described] | None = None
        self._last_change = ""
        self._is_catching_up = False
        self._has_started = False

    @property
    def broker(self) -> Snapshot:
        """The broker's current options."""
        return self._broker

    def topic(self, name: str) -> Snapshot:
        """Return the current options of a topic; a topic without settings has the defaults."""
        if name not in self._topics:
            return self._topic_default
        snapshot = self._topic_snapshots.get(name)
        if snapshot is None:
            snapshot = option_tables.topic_snapshot(self._broker, self._topics[name])
            self._topic_snapshots[name] = snapshot
        return snapshot

    def entities(self, entity_type: str) -> Mapping[str, Mapping[str, str]]:
        """Return the settings of all clients, users, addresses or subscriptions, by path."""
        return {
            path: settings
            for (kind, path), settings in self._entities.items()
            if kind == entity_type
        }

    def group(self, name: str) -> Mapping[str, int]:
        """Return a group's own settings in force; empty if the group has no settings."""
        own = self._group_settings(name)
        return group_options.effective(own, self._broker) if own else {}

    def _group_settings(self, name: str) -> dict[str, str]:
        own = self._entities.get((ConfigNode.GROUPS, ConfigNode.sanitize(name)))
        return _usable(GROUP_OPTIONS.row, own, f"group {name}") if own else {}

    # -- reading the tree -------------------------------------------------------------------------

    async def start(self, session: Coordination) -> None:
        """Read every setting and follow changes; raises ConnectionSuspended or SessionLost.

        Raises ConfigError at the first start for an option of security that would have no effect.
        """
        self._session = session
        session.on_session(self._session_changed)
        await session.ensure(ConfigChangeNode.PARENT)
        # The watch is set before the reading, so that nothing falls between the two.
        changes = await session.children(ConfigChangeNode.PARENT, self._changed)
        self._last_change = changes[-1] if changes else ""
        for entity in (ConfigNode.DEFAULT, self._node):
            await self._load(ConfigNode.BROKERS, entity)
        self._topics.clear()
        self._read.clear()
        parent = ConfigNode.type_path(ConfigNode.TOPICS)
        await session.ensure(parent)
        await self.load_topics(await session.children(parent))
        await self._load_entities(session)
        self._rebuild()
        self._has_started = True

    async def _load_entities(self, session: Coordination) -> None:
        entities = dict.fromkeys(self._entities)
        for entity_type in _PLAIN_TYPES:
            parent = ConfigNode.type_path(entity_type)
            await session.ensure(parent)
            for name in await session.children(parent):
                entities[entity_type, name] = None
                if entity_type == ConfigNode.USERS:
                    clients = await self._clients_of(session, name)
                    entities |= dict.fromkeys((entity_type, client) for client in clients)
        for entity_type, path in entities:
            if await self._load(entity_type, path):
                self._tell_entity(entity_type, path)

    async def _clients_of(self, session: Coordination, user: str) -> list[str]:
        below = f"{user}/{ConfigNode.CLIENTS}"
        try:
            names = await session.children(ConfigNode.path(ConfigNode.USERS, below))
        except NoNode:
            return []
        return [f"{below}/{name}" for name in names]

    def _tell_entity(self, entity_type: str, path: str) -> None:
        settings = self._entities.get((entity_type, path), {})
        for tell in self.on_entity:
            tell(entity_type, path, settings)

    async def load_topics(self, names: Iterable[str]) -> None:
        """Read topics' settings: used for new topics, before their logs are created."""
        for name in names:
            await self._load(ConfigNode.TOPICS, name)
            self._read.add(name)

    def unread(self, names: Iterable[str]) -> list[str]:
        """Return the topics whose settings have not been read yet."""
        return [name for name in dict.fromkeys(names) if name not in self._read]

    def forget_topics(self, names: Iterable[str]) -> None:
        """Remove the settings of deleted topics."""
        for name in names:
            self._read.discard(name)
            self._topics.pop(name, None)
            self._topic_snapshots.pop(name, None)

    async def refresh(self, entity_type: str, entity: str) -> None:
        """Read an entity's settings now, before the notification of their change arrives."""
        if await self._load(entity_type, entity):
            self._apply(entity_type, entity)
        if entity_type == ConfigNode.BROKERS and entity == self._node:
            for notify in self.on_own:
                notify()

    def _apply(self, entity_type: str, entity: str) -> None:
        if entity_type == ConfigNode.TOPICS:
            snapshot = self.topic(entity)
            for tell_topic in self.on_topic:
                tell_topic(entity, snapshot)
        elif entity_type == ConfigNode.BROKERS:
            self._rebuild()
            for tell_broker in self.on_broker:
                tell_broker(self._broker)
        else:
            self._tell_entity(entity_type, entity)

    async def _load(self, entity_type: str, entity: str) -> bool:
        """Read an entity; return True if its settings have changed."""
        assert self._session is not None, "the store has not been started"
        path = ConfigNode.path(entity_type, entity)
        try:
            data, _ = await self._session.get(path)
        except NoNode:
            written: dict[str, str] = {}
        else:
            written = ConfigNode.decode(path, data)
        if entity_type == ConfigNode.TOPICS:
            return self._keep_topic(entity, written)
        if entity_type == ConfigNode.BROKERS and entity in (self._node, ConfigNode.DEFAULT):
            self._check_security(entity, written)
            known = {name: text for name, text in written.items() if _is_broker_option(name)}
            usable = _usable(_broker_row, known, f"broker {entity}")
            is_other = self._brokers.get(entity, {}) != usable
            self._brokers[entity] = usable
            return self._unknown.keep(entity, written.keys() - known.keys()) or is_other
        return entity_type in _PLAIN_TYPES and self._keep_entity((entity_type, entity), written)

    def _check_security(self, entity: str, names: Iterable[str]) -> None:
        """Refuse to start with options of security that a broker of Apache Kafka has stored.

        Ottla's brokers read them from their files, so they would have no effect. Raises ConfigError
        at the start; later an error is logged.
        """
        for name in names:
            row = tls_options.dynamic_row(name) or BROKER_OPTIONS.rows.get(name)
            is_dynamic = row is not None and row.dynamic
            if is_dynamic or not security_names.is_security_option(name, BROKER_OPTIONS.rows):
                continue
            error = ConfigError(
                f"The metadata sets the security option {name} of broker {entity or 'default'}, which "
                "would have no effect: delete it there (kafka-configs --delete-config), and set it in "
                "the broker's file"
            )
            if not self._has_started:
                raise error
            _log.error("security option without effect error=%s", error)

    def _keep_entity(self, entity: tuple[str, str], written: dict[str, str]) -> bool:
        if written == self._entities.get(entity, {}):
            return False
        if written:
            self._entities[entity] = written
        else:
            del self._entities[entity]
        return True

    def _keep_topic(self, name: str, written: Mapping[str, str]) -> bool:
        usable = _usable(TOPIC_OPTIONS.row, written, f"topic {name}")
        if usable == self._topics.get(name, {}):
            return False
        self._topic_snapshots.pop(name, None)
        if usable:
            self._topics[name] = usable
        else:
            del self._topics[name]
        return True

    def _rebuild(self) -> None:
        """Rebuild the broker's options; topics' defaults follow."""
        self._broker = self.altered(self._brokers.get(self._node, {}))
        self._topic_snapshots.clear()
        self._topic_default = option_tables.topic_snapshot(self._broker, {})
        self._described_default = self._described_broker = None

    @property
    def static(self) -> Snapshot:
        """The options of the broker's configuration."""
        return self._static

    @property
    def own(self) -> Mapping[str, str]:
        """The settings of this broker that were altered, as they are written in the tree."""
        return self._brokers.get(self._node, {})

    def altered(self, own: Mapping[str, str]) -> Snapshot:
        """Return the options that this broker would have with these settings of its own."""
        values = dict(self._static.explicit)
        for settings in (self._brokers.get(ConfigNode.DEFAULT, {}), own):
            values |= {
                name: _broker_row(name).parse(text)
                for name, text in settings.items()
                if _is_broker_option(name)
            }
        return Snapshot(BROKER_OPTIONS, values)

    # -- following changes ------------------------------------------------------------------------

    def _session_changed(self, state: SessionState) -> None:
        # An earlier read may have been interrupted after its watch had fired.
        if state is SessionState.CONNECTED:
            self._changed(ConfigChangeNode.PARENT)

    def _changed(self, _path: str) -> None:
        if not self._is_catching_up:
            self._is_catching_up = True
            self._tasks.supervise(self._catch_up, "config changes")

    async def _catch_up(self) -> None:
        """Read the entities named by notifications that are newer than the last one seen."""
        assert self._session is not None, "the store has not been started"
        session = self._session
        try:
            # From here on the new watch starts the next pass.
            self._is_catching_up = False
            names = await session.children(ConfigChangeNode.PARENT, self._changed)
            for name in names:
                if name > self._last_change:
                    await self._follow(session, f"{ConfigChangeNode.PARENT}/{name}")
                    self._last_change = max(self._last_change, name)
        except (ConnectionSuspended, SessionLost) as error:
            # When a suspended session is back it is read again; after a lost one `start` reads all.
            _log.warning("failed to read config changes error=%s", error)

    async def _follow(self, session: Coordination, path: str) -> None:
        try:
            data, _ = await session.get(path)
        except NoNode:
            return
        entity_type, entity = ConfigChangeNode.decode(path, data)
        await self.refresh(entity_type, entity)

    # -- explaining -------------------------------------------------------------------------------

    def describe_topic(self, name: str) -> list[Described]:
        """Return every option of a topic, by name."""
        own = self._topics.get(name)
        if own:
            return self.describe_settings(own)
        if self._described_default is None:
            self._described_default = self.describe_settings({})
        return self._described_default

    def describe_settings(self, own: Mapping[str, str]) -> list[Described]:
        """Return every option that a topic with these settings would have on this broker."""
        snapshot = option_tables.topic_snapshot(self._broker, own)
        return [
            self._describe_topic_option(TOPIC_OPTIONS.rows[name], snapshot, own)
            for name in sorted(TOPIC_OPTIONS.rows)
            if name in own or not name.startswith(_HIDDEN)
        ]

    def _describe_topic_option(
        self, row: Option, snapshot: Snapshot, own: Mapping[str, str]
    ) -> Described:
        synonyms = []
        if row.name in own:
            value = row.render(snapshot[row.name])
            synonyms.append(Synonym(row.name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG))
        names = [synonym.name for synonym in option_tables.topic_synonyms(row.name)]
        synonyms += self._broker_synonyms(names)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        value = None if row.sensitive else row.render(snapshot[row.name])
        return Described(row, value, source, synonyms, is_read_only=False)

    def describe_broker(self) -> list[Described]:
        """Return every option of this broker, by name; those that are not known come first."""
        if self._described_broker is None:
            self._described_broker = list(self._describe_broker())
        return self._described_broker

    def _describe_broker(self) -> Iterator[Described]:
        yield from self._unknown.described(self._node, ConfigNode.DEFAULT)
        for name in sorted(BROKER_OPTIONS.rows.keys() | self.own.keys()):
            row = _broker_row(name)
            names = [synonym.name for synonym in option_tables.broker_synonyms(name)]
            synonyms = self._broker_synonyms(names)
            own = [synonym.source for synonym in synonyms if synonym.name == name]
            source = own[0] if own else ConfigSource.DEFAULT_CONFIG
            value = None if row.sensitive else row.render(self._broker[name])
            yield Described(row, value, source, synonyms, not row.dynamic)

    def describe_client_metrics(self, name: str) -> list[Described]:
        """Return every option of a subscription; one that does not exist has the defaults."""
        entity = (ConfigNode.CLIENT_METRICS, ConfigNode.sanitize(name))
        own = self._entities.get(entity, {})
        described = []
        for row in CLIENT_METRICS_OPTIONS.rows.values():
            if row.name in own:
                source = ConfigSource.CLIENT_METRICS_CONFIG
                value: str | None = own[row.name]
                synonyms = [Synonym(row.name, value, source)]
            else:
                source, value, synonyms = ConfigSource.DEFAULT_CONFIG, row.render(row.default), []
            described.append(Described(row, value, source, synonyms, is_read_only=False))
        return described

    def describe_group(self, name: str) -> list[Described]:
        """Return every option of a group, which need not exist."""
        own = self._group_settings(name)
        described = []
        for row in GROUP_OPTIONS.rows.values():
            synonyms = []
            if row.name in own:
                synonyms.append(Synonym(row.name, own[row.name], ConfigSource.GROUP_CONFIG))
            synonyms += self._broker_synonyms([row.fallback or row.name])
            first = synonyms[0]
            described.append(
                Described(row, first.value, first.source, synonyms, is_read_only=False)
            )
        return described

    def describe_broker_default(self) -> list[Described]:
        """Return the options that are set for all brokers at once."""
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        described = self._unknown.described(ConfigNode.DEFAULT)
        for name, text in sorted(self._brokers.get(ConfigNode.DEFAULT, {}).items()):
            row = BROKER_OPTIONS.rows[name]
            value = None if row.sensitive else row.render(row.parse(text))
            synonyms = [Synonym(name, value, source)]
            described.append(Described(row, value, source, synonyms, not row.dynamic))
        return described

    def _broker_synonyms(self, names: Sequence[str]) -> list[Synonym]:
        """Return the sources of the broker options `names`, in order of precedence."""
        layers = (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self._brokers.get(self._node, {})),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self._brokers.get(ConfigNode.DEFAULT, {})),
        )
        synonyms = []
        for source, settings in layers:
            for name in names:
                if name in settings:
                    row = _broker_row(name)
                    synonyms.append(_synonym(row, row.parse(settings[name]), source))
        for name in names:
            if name in self._static.explicit:
                row = _broker_row(name)
                value = self._static.explicit[name]
                synonyms.append(_synonym(row, value, ConfigSource.STATIC_BROKER_CONFIG))
        for name in names:
            row = _broker_row(name)
            if row.default is not None:
                synonyms.append(_synonym(row, row.default, ConfigSource.DEFAULT_CONFIG))
        # Kafka omits the sources before the first one with the option's own name.
        own = [index for index, synonym in enumerate(synonyms) if synonym.name in names[:1]]
        return synonyms[own[0] :] if own else []


def _synonym(row: Option, value: object, source: ConfigSource) -> Synonym:
    return Synonym(row.name, None if row.sensitive else row.render(value), source)


class _UnknownOptions:
    """The names of brokers' options that are in the tree, and which this version does not know.

    Plug-ins of Apache Kafka have such options. As in Kafka, a value may be a secret.
    """

    def __init__(self) -> None:
        self._names: dict[str, Set[str]] = {}

    def keep(self, entity: str, names: Set[str]) -> bool:
        """Keep the names of a broker or of the default, and log new ones; True if they differ."""
        before = self._names.get(entity, frozenset())
        for name in sorted(names - before):
            _log.warning(
                "unknown broker option has no effect entity=%s name=%s",
                entity, name,
            )  # fmt: skip
        self._names[entity] = names
        return names != before

    def described(self, *entities: str) -> list[Described]:
        """Describe the options of these entities, of which the first one takes precedence."""
        sources: dict[str, list[ConfigSource]] = {}
        for entity in entities:
            source = ConfigSource.DYNAMIC_BROKER_CONFIG
            if entity == ConfigNode.DEFAULT:
                source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
            for name in self._names.get(entity, ()):
                sources.setdefault(name, []).append(source)
        return [
            Described(
                _unknown_row(name),
                None,
                sources[name][0],
                [Synonym(name, None, source) for source in sources[name]],
                is_read_only=True,
            )
            for name in sorted(sources)
        ]


def _unknown_row(name: str) -> Option:
    kind, scope = OptionType.UNKNOWN, Scope.BROKER
    return Option(
        name=name, type=kind, default=None, doc="", scope=scope, dynamic=False, sensitive=True
    )


def _is_broker_option(name: str) -> bool:
    return tls_options.dynamic_row(name) is not None or name in BROKER_OPTIONS.rows


def _broker_row(name: str) -> Option:
    """Return an option of brokers, or one of a listener that can be altered; else ConfigError."""
    return tls_options.dynamic_row(name) or BROKER_OPTIONS.row(name)


def _usable(
    row_of: Callable[[str], Option], written: Mapping[str, str], whose: str
) -> dict[str, str]:
    """Return the settings that this version knows and accepts; the others are logged."""
    usable = {}
    for name, text in written.items():
        try:
            row_of(name).parse(text)
        except ConfigError as error:
            _log.warning("setting ignored entity=%s error=%s", whose, error)
        else:
            usable[name] = text
    return usable
