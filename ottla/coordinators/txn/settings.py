"""The broker options for transactions, read once for each snapshot of them."""

from typing import NamedTuple

from ottla.base.options import Snapshot
from ottla.coordinators.hosted import RuntimeSettings

# Longer than the request timeout of a client.
_COMMIT_TIMEOUT_MS = 30_000


class TransactionSettings(NamedTuple):
    """Limits and times (ms) of transactions; the defaults are Kafka's."""

    runtime: RuntimeSettings = RuntimeSettings()
    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 7 * 24 * 3600 * 1000
    timeout_check_interval_ms: int = 10_000
    expiration_check_interval_ms: int = 3_600_000
    state_partitions: int = 50

    @classmethod
    def from_options(cls, options: Snapshot) -> "TransactionSettings":
        """Read the options by their Kafka names."""
        return cls(
            runtime=RuntimeSettings(
                commit_timeout_ms=_COMMIT_TIMEOUT_MS,
                load_bytes=options.integer("transaction.state.log.load.buffer.size"),
            ),
            max_timeout_ms=options.integer("transaction.max.timeout.ms"),
            id_expiration_ms=options.integer("transactional.id.expiration.ms"),
            timeout_check_interval_ms=options.integer(
                "transaction.abort.timed.out.transaction.cleanup.interval.ms"
            ),
            expiration_check_interval_ms=options.integer(
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ),
            state_partitions=options.integer("transaction.state.log.num.partitions"),
        )
