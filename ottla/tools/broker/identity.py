"""The id of a broker whose configuration names none: generated once, then kept in its log
directory.

Follows KafkaServer.getOrGenerateBrokerId: the version of a node that every new broker writes is the
sequence, and ids begin above `reserved.broker.max.id`, below which people choose their own.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module
from ottla.base.options import Snapshot
from ottla.cluster.options.option_tables import parse_broker_settings
from ottla.cluster.znodes import BrokerSequenceIdNode
from ottla.storage.files.checkpoints import META_PROPERTIES_FILE, parse_properties

# Most brokers need no client of ZooKeeper.
if TYPE_CHECKING:
    from ottla.cluster import secured_znodes
    from ottla.cluster.zk import live, tls
else:
    live = deferred_module("ottla.cluster.zk.live")
    secured_znodes = deferred_module("ottla.cluster.secured_znodes")
    tls = deferred_module("ottla.cluster.zk.tls")


def with_identity(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with a broker.id.

    An id is generated for a broker on ZooKeeper without one. Raises ConfigError for invalid
    settings, EnsembleUnreachable if ZooKeeper does not respond.
    """
    options = parse_broker_settings(settings).snapshot
    is_generated = options.boolean("broker.id.generation.enable") and options["zookeeper.connect"]
    if settings.get("node.id") or settings.get("broker.id", "-1") != "-1" or not is_generated:
        return dict(settings)
    stored = _stored_id(options.strings("log.dirs"))
    if stored is None:
        stored = str(asyncio.run(_next_id(options)) + options.integer("reserved.broker.max.id"))
    return {**settings, "broker.id": stored}


def _stored_id(directories: list[str]) -> str | None:
    for directory in directories:
        path = Path(directory, META_PROPERTIES_FILE)
        if path.exists():
            properties = parse_properties(path.read_bytes())
            return properties.get("broker.id", properties.get("node.id"))
    return None


async def _next_id(options: Snapshot) -> int:
    timeout_ms = options.integer("zookeeper.session.timeout.ms")
    session = await live.LiveSession.begin(
        options.text("zookeeper.connect"),
        timeout_ms=timeout_ms,
        connect_timeout_ms=timeout_ms,
        acl_of=secured_znodes.acl_of(options),
        tls_options=tls.options_of(options),
    )
    try:
        await session.ensure(BrokerSequenceIdNode.PATH)
        return (await session.set(BrokerSequenceIdNode.PATH, b"")).version
    finally:
        await session.close()
