"""The data directories of released versions are opened: records, transactions, offsets, settings."""

import tarfile
from pathlib import Path

import pytest

import ottla
from ottla.client.admin import configs, offsets, scram
from ottla.testing import Cluster
from tests.integration.server.golden.recording import CODECS, FOLDER, OPTIONS

ARCHIVES = sorted(FOLDER.glob("*.tar.xz"))


def test_each_version_has_two_directories() -> None:
    """A new version needs the archives that the program `recording` writes."""
    names = {path.name for path in ARCHIVES}
    assert {f"{ottla.__version__}-{state}.tar.xz" for state in ("stopped", "killed")} <= names
    assert all(path.stat().st_size < 50_000 for path in ARCHIVES)


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_directory_of_a_released_version_is_opened(archive: Path, tmp_path: Path) -> None:
    """Nothing is lost, and the broker continues at the next offsets."""
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    with Cluster(data=tmp_path / "data", options=OPTIONS) as cluster:
        assert cluster.topics() == ["orders", "state"]
        records = cluster.records("orders")
        expected = [
            b"value-%d-%d" % (codec, number)
            for parity in (0, 1)
            for codec in CODECS
            if codec % 2 == parity
            for number in range(10)
        ]
        assert [record.value for record in records] == expected
        assert records[0].headers == [("h", b"1")]
        assert [record.value for record in cluster.records("state")] == [
            b"1",
            b"2",
            None,
            b"committed",
        ]
        with cluster.admin() as brokers:
            committed = offsets.committed_offsets(brokers, "shop")
            assert committed["orders", 0].offset == 7
            assert committed["orders", 0].metadata == "seven"
            assert list(scram.describe_user_scram_credentials(brokers)) == ["anna"]
            ends = offsets.list_offsets(brokers, {("orders", 0): offsets.LATEST})
            topic = configs.Resource(configs.ResourceType.TOPIC, "orders")
            rows = configs.describe_config(brokers, topic, names=["index.interval.bytes"])
            assert [row.value for row in rows] == ["100"]
        cluster.produce("orders", b"new", partition=0)
        last = [record for record in cluster.records("orders") if record.partition == 0][-1]
        assert (last.offset, last.value) == (ends["orders", 0].offset, b"new")
