"""The consumer's options for librdkafka, with Kafka's defaults."""

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.base.loading import deferred_module
from ottla.client import transport
from ottla.client.config.names import Role
from ottla.client.config.opening import open_client
from ottla.client.config.settings import ClientSettings
from ottla.client.errors import ClientError
from ottla.client.group.coordinator_thread import CoordinatorThread
from ottla.client.group.departures import Departures
from ottla.client.reach.connection_watch import own_brokers
from ottla.client.records import native_names

# Only a few consumers have an assignor that librdkafka lacks.
if TYPE_CHECKING:
    from ottla.client.group import group_consumer
else:
    group_consumer = deferred_module("ottla.client.group.group_consumer")

# allow.auto.create.topics is false, librdkafka's own default: with Kafka's, its consumers create no
# topic when they subscribe, but create a deleted one again, also if they read it by a pattern.
_DEFAULTS = {
    "auto.offset.reset": "latest",
    "isolation.level": "read_uncommitted",
    **transport.QUEUE,
}
# Positions and commits are Ottla's: librdkafka would commit records that are not processed yet. The
# end of a partition is its position if it has returned no record.
_FIXED = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
}
# The longest time for one request to the coordinator: one that does not respond is then looked up
# again.
_REQUEST_MS_MAX = 10_000
_NO_GROUP = "ottla-without-group"
_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_IGNORED_TOPICS = "topic.blacklist"
_NAME_OR_PATTERN = re.compile(r"\^.*|(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}", re.DOTALL)


def is_incremental(settings: ClientSettings) -> bool:
    """Return True if rebalances change assignments incrementally (KIP-429, KIP-848)."""
    strategy = settings.native.get("partition.assignment.strategy", "")
    if not isinstance(strategy, str):
        return False
    protocol = str(settings.native.get("group.protocol", "classic")).lower()
    return "cooperative" in strategy or protocol == "consumer"


def has_extended_patterns(settings: ClientSettings) -> bool:
    """Return True if librdkafka matches topics itself, with POSIX extended regular expressions.

    With KIP-848 the broker does (RE2/J), and with an assignor of Python, Python.
    """
    protocol = str(settings.native.get("group.protocol", "classic")).lower()
    return not has_own_member(settings) and protocol != "consumer"


def has_own_member(settings: ClientSettings) -> bool:
    """Return True if an assignor of Python is configured, with which librdkafka is no member."""
    return not isinstance(settings.native.get("partition.assignment.strategy", ""), str)


def first_offset(settings: ClientSettings) -> int:
    """Return where partitions start without a group: as `auto.offset.reset` says."""
    reset = settings.native.get("auto.offset.reset", "latest")
    return transport.EARLIEST if reset == "earliest" else transport.LATEST


def names_to_subscribe(settings: ClientSettings, topics: str | Sequence[str]) -> list[str]:
    """Return the names of topics; ClientError for those that the consumer ignores."""
    names = _checked_names([topics] if isinstance(topics, str) else topics)
    internal = sorted(set(names).intersection(_INTERNAL_TOPICS))
    if internal and settings.native.get(_IGNORED_TOPICS):
        raise ClientError(
            f"cannot subscribe to {', '.join(internal)}: create the consumer with that topic, or "
            "with exclude_internal_topics=False"
        )
    return names


def _checked_names(topics: Iterable[Any]) -> list[str]:
    names = native_names(topics)
    for name in names:
        # librdkafka would wait for such a topic for ever.
        if not _NAME_OR_PATTERN.fullmatch(name):
            raise ClientError(
                f"cannot subscribe to {name!r}: the name of a topic has 1 to 249 ASCII letters, "
                "digits, '.', '_' and '-'; for several topics use a list, for a pattern the "
                "argument `pattern` of subscribe"
            )
    return names


def open_consumer(
    settings: ClientSettings,
    departures: Departures,
    on_commit: Callable[[Any, Any], None],
    on_error: Callable[[Any], None],
    topics: Sequence[str] = (),
) -> Any:
    """Return librdkafka's consumer; ClientError names the wrong option.

    `on_error` is called with errors of connections, in `poll`.

    A member of a group ignores internal topics unless they are among `topics`, its first ones, or
    `exclude.internal.topics` is false: librdkafka's patterns would match them.
    """
    names = _checked_names(topics)
    excludes = settings.flag("exclude.internal.topics", "group.id" in settings.native)
    if excludes and not set(names).intersection(_INTERNAL_TOPICS):
        expressions = ",".join(f"^{name}$" for name in _INTERNAL_TOPICS)
        settings.native.setdefault(_IGNORED_TOPICS, expressions)
    # A logger of this consumer alone: its lines report why a member left its group.
    logger = logging.Logger("ottla.client.librdkafka", logging.INFO)
    logger.addHandler(departures)
    properties = {"group.id": _NO_GROUP, **_DEFAULTS, **settings.native, **_FIXED}
    properties["on_commit"] = on_commit
    properties.setdefault("error_cb", on_error)
    properties.setdefault("logger", logger)
    properties.setdefault("log_level", 6)
    assignors = properties.get("partition.assignment.strategy", "")
    if isinstance(assignors, str):
        return open_client(Role.CONSUMER, settings, transport.open_consumer, properties)
    open_native = partial(
        group_consumer.open_group_consumer, assignors=assignors, departures=departures
    )
    return open_client(Role.CONSUMER, settings, open_native, properties)


def coordinator_thread(settings: ClientSettings, timeout_s: float) -> CoordinatorThread | None:
    """Return what commits and looks up the offsets of a group, over a connection of its own.

    None without a group, and with options of TLS or SASL that only librdkafka has.
    """
    options = settings.merged
    if "group.id" not in options:
        return None
    request_ms = float(settings.native.get("socket.timeout.ms", _REQUEST_MS_MAX))
    brokers = own_brokers(options, min(request_ms, _REQUEST_MS_MAX) / 1000)
    if brokers is None:
        return None
    is_committed = options.get("isolation.level") == "read_committed"
    return CoordinatorThread(brokers, options["group.id"], timeout_s, require_stable=is_committed)
