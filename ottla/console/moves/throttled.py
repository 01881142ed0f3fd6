"""The throttles of moves: the console removes those that it has set when no move runs any longer.

A throttle that stays limits every follower that falls behind later. The brokers and topics are in
the console's file, so that a restart, or another console of the folder, removes them, too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ottla.client.admin import replicas as admin
from ottla.console.accounts.audit import Actor, AuditLog
from ottla.console.accounts.database import Database
from ottla.console.catalogue import ClusterCatalogue
from ottla.console.model import throttles
from ottla.console.model.overview import Sample
from ottla.console.model.reassignments import Move, execute
from ottla.console.sampler import Listener
from ottla.operations.changes import Change
from ottla.operations.moves.throttles import remove_rates
from ottla.operations.survey.connections import ClusterConnection

# A move that has just started may not be listed yet.
_GRACE_MS = 5_000
_CONSOLE = Actor("console", "")
_TABLE = """
CREATE TABLE IF NOT EXISTS throttled_moves (
    cluster TEXT NOT NULL,
    topic TEXT NOT NULL,
    brokers TEXT NOT NULL,
    at_ms INTEGER NOT NULL
)
"""


class ThrottledMoves(Listener):
    """The moves with a throttle, of all clusters; for any thread. It listens to the sampler."""

    def __init__(self, database: Database, clusters: ClusterCatalogue, audit: AuditLog) -> None:
        self._database = database
        self._clusters = clusters
        self._audit = audit
        database.create(_TABLE)

    @contextmanager
    def starting(self, connection: ClusterConnection, moves: Sequence[Move]) -> Iterator[None]:
        """Remember moves that start with a throttle in this block, unless it raises."""
        at_ms = connection.now_ms()
        rows: dict[str, set[int]] = {}
        for move in moves:
            rows.setdefault(move.topic, set()).update((*move.before, *move.after))
        self._database.change_many(
            "INSERT INTO throttled_moves VALUES (?, ?, ?, ?)",
            [
                (connection.name, topic, ",".join(map(str, sorted(brokers))), at_ms)
                for topic, brokers in rows.items()
            ],
        )
        try:
            yield
        except BaseException:
            self._forget(connection.name, at_ms)
            raise

    def on_sample(self, sample: Sample) -> None:
        """Remove the throttles if no partition of the cluster is being moved."""
        rows = self._database.rows(
            "SELECT * FROM throttled_moves WHERE cluster = ?", (sample.cluster,)
        )
        latest_ms = max((row["at_ms"] for row in rows), default=None)
        if latest_ms is None or sample.at_ms - latest_ms < _GRACE_MS:
            return
        connection = self._clusters.get(sample.cluster)
        with connection.brokers() as brokers:
            if admin.list_partition_reassignments(brokers):
                return
        leader, follower, limited = throttles.read(connection)
        nodes = {int(node) for row in rows for node in row["brokers"].split(",")}
        rates = {node: rate for node, rate in {**leader, **follower}.items() if node in nodes}
        topics = sorted({row["topic"] for row in rows} & {*limited})
        if rates or topics:
            with connection.brokers() as brokers:
                change = remove_rates(brokers, rates, topics, cluster=connection.name)
            connection.forget()
            self._audit.write(
                _CONSOLE,
                change.action,
                cluster=change.cluster,
                target=change.resource,
                details={name: f"{value} → –" for name, value in change.before.items()},
            )
        self._forget(sample.cluster, latest_ms)

    def _forget(self, cluster: str, at_ms: int) -> None:
        self._database.change(
            "DELETE FROM throttled_moves WHERE cluster = ? AND at_ms <= ?", (cluster, at_ms)
        )


def start_moves(
    connection: ClusterConnection,
    throttled: ThrottledMoves,
    moves: Sequence[Move],
    bytes_per_s: int | None,
) -> Change:
    """Start the moves of a plan; a throttle ends with them. Raises as `reassignments.execute`."""
    if bytes_per_s is None:
        return execute(connection, moves)
    with throttled.starting(connection, moves):
        return execute(connection, moves, throttle_bytes_per_s=bytes_per_s)
