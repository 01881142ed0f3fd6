"""Write the data directories of the current version.

Run `python -m tests.integration.server.golden.recording` when a version is released. One directory
is of a broker that was stopped, one of a broker that was killed. An archive that exists is never
written again: users of that version have such files.
"""

import io
import tarfile
import tempfile
from pathlib import Path

import ottla
from ottla.client.admin.offsets import CommittedOffset, commit_offsets
from ottla.client.admin.scram import ScramUpsertion, alter_user_scram_credentials, mechanism_of
from ottla.client.raw.batches import append_batch
from ottla.client.transaction import begin
from ottla.testing import Cluster
from ottla.wire.records.records import Record

FOLDER = Path(__file__).parent
OPTIONS = {
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "log.cleaner.enable": False,
}
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CODECS = (0, GZIP, SNAPPY, LZ4, ZSTD)
TIMESTAMP_MS = 1_700_000_000_000
_TRANSACTION_MS = 60_000


def write(cluster: Cluster) -> None:
    """Write topics, records of all codecs, transactions, offsets, a configuration and a user."""
    cluster.create_topic(
        "orders", partitions=2, config={"retention.ms": -1, "index.interval.bytes": 100}
    )
    cluster.create_topic("state", config={"cleanup.policy": "compact"})
    with cluster.admin() as brokers:
        for codec in CODECS:
            rows = [
                Record(b"%d" % codec, b"value-%d-%d" % (codec, number), [("h", b"1")], TIMESTAMP_MS)
                for number in range(10)
            ]
            append_batch(brokers, "orders", codec % 2, rows, codec=codec)
        append_batch(
            brokers, "state", 0, [Record(b"a", b"1"), Record(b"a", b"2"), Record(b"b", None)]
        )
        for name, ends in (("committed", True), ("aborted", False)):
            transaction = begin(brokers, name, _TRANSACTION_MS)
            transaction.add(brokers, "state", [0])
            row = [Record(b"c", name.encode(), (), TIMESTAMP_MS)]
            append_batch(brokers, "state", 0, row, transaction=transaction)
            (transaction.commit if ends else transaction.abort)(brokers)
        commit_offsets(brokers, "shop", {("orders", 0): CommittedOffset(7, metadata="seven")})
        user = ScramUpsertion("anna", mechanism_of("SCRAM-SHA-256"), "secret")
        alter_user_scram_credentials(brokers, [user])


def record(path: Path, *, is_clean: bool) -> None:
    """Write one archive."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with Cluster(data=data, options=OPTIONS) as cluster:
            write(cluster)
            if not is_clean:
                cluster.kill(1)
                path.write_bytes(packed(data))
        if is_clean:
            path.write_bytes(packed(data))


def packed(data: Path) -> bytes:
    """Return an archive of a folder, without the lock."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        tar.add(data, "data", filter=lambda item: None if item.name.endswith("/.lock") else item)
    return buffer.getvalue()


if __name__ == "__main__":
    for state in ("stopped", "killed"):
        target = FOLDER / f"{ottla.__version__}-{state}.tar.xz"
        if not target.exists():
            record(target, is_clean=state == "stopped")
