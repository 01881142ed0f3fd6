"""The parts of a producer that do not depend on how it waits: in threads or on an event loop."""

import logging
import time
import weakref
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import transport
from ottla.client.config.names import Role
from ottla.client.config.settings import ClientSettings, Config, read_settings
from ottla.client.errors import ClientError, TimedOut
from ottla.client.producer.back_pressure import Deadline
from ottla.client.producer.options import ProducerErrors, open_producer
from ottla.client.producer.partitioners import Topology
from ottla.client.producer.preparation import Preparation
from ottla.client.producer.transactions import Transactions
from ottla.client.reach.connection_watch import ConnectionWatch

_MAX_BLOCK_MS = 60_000.0
_STEP_S = 0.05
_log = logging.getLogger("ottla.client")


class ProducerParts(NamedTuple):
    """librdkafka's producer, the steps in front of it, its transactions, and `max.block.ms` in s."""

    settings: ClientSettings
    producer: Any
    errors: ProducerErrors
    preparation: Preparation
    transactions: Transactions
    max_block_s: float
    waits: transport.Waits
    reachability: ConnectionWatch

    def close(self, *, is_interrupted: bool) -> None:
        """Close librdkafka's producer; in the background if it does not end at once after Ctrl-C."""
        try:
            if is_interrupted:
                with suppress(TimedOut):
                    self.waits.call(
                        lambda: transport.close_producer(self.producer), transport.INTERRUPTED_S / 2
                    )
            else:
                transport.close_producer(self.producer)
        finally:
            self.waits.stop()
            self.reachability.stop()
            self.preparation.close()

    def warning_unless_closed(self, owner: object) -> "weakref.finalize[[Any], object]":
        """Return the finalizer that logs lost records if `owner` is never closed; `close` detaches
        it.
        """
        return weakref.finalize(owner, _warn_of_unsent, self.producer)

    def check_transactional(self) -> None:
        """Raise ClientError if the producer has no transactional id."""
        if "transactional.id" not in self.settings.merged:
            raise ClientError("transactions need the option transactional_id")


def open_parts(config: Config, keywords: dict[str, Any]) -> ProducerParts:
    """Open librdkafka's producer with the settings of `config` and `keywords`, Kafka's names."""
    settings = read_settings(Role.PRODUCER, config, keywords)
    reachability = ConnectionWatch("producer", settings.merged)
    errors = ProducerErrors(reachability)
    producer = open_producer(settings, errors)
    max_block_s = settings.number("max.block.ms", _MAX_BLOCK_MS) / 1000
    waits = transport.Waits(reachability)
    topology = Topology(partial(_look_up, producer, waits, max_block_s, errors))
    return ProducerParts(
        settings,
        producer,
        errors,
        Preparation(settings, topology),
        Transactions(producer, max_block_s, waits, errors),
        max_block_s,
        waits,
        reachability,
    )


def _warn_of_unsent(producer: Any) -> None:
    # The length also counts errors that were not served: it is no number of records.
    if len(producer):
        _log.warning(
            "a producer was not closed, and unacknowledged records may be lost: use "
            "`with`, or call close()"
        )


def _look_up(
    producer: Any, waits: transport.Waits, timeout_s: float, errors: ProducerErrors, topic: str
) -> list[int]:
    """Return the partitions of a topic, which the broker may create; ApiError if it does not."""
    deadline = Deadline(timeout_s)
    while True:
        try:
            listing = waits.call(lambda: producer.list_topics(topic, min(timeout_s, 10.0)))
        except transport.LibrdkafkaError as error:
            raise errors.explained(transport.translate(error.args[0])) from error
        metadata = listing.topics[topic]
        if metadata.partitions:
            return list(metadata.partitions)
        cause = None if metadata.error is None else transport.translate(metadata.error)
        if isinstance(cause, ApiError) and cause.code is not ErrorCode.LEADER_NOT_AVAILABLE:
            raise cause
        deadline.check(topic)
        time.sleep(_STEP_S)
