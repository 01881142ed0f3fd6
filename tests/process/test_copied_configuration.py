"""Two processes with one broker id: a copied configuration, and a quick restart after kill -9."""

import subprocess
from pathlib import Path

import pytest

from ottla.testing.process import COMMAND
from tests.process.broker_cluster import PATIENCE_S, SESSION_MS, BrokerCluster

pytestmark = pytest.mark.slow


def test_copied_configuration_is_refused_and_the_first_broker_serves(tmp_path: Path) -> None:
    """The newcomer has the id and the addresses, and other log directories; its error names both."""
    with BrokerCluster(tmp_path, count=2) as cluster:
        cluster.create_topic("t", partitions=2)
        rows = (tmp_path / "server2.properties").read_text().splitlines()
        copied = [row for row in rows if not row.startswith(("listeners=", "log.dirs="))]
        address = f"127.0.0.1:{cluster.port(2)}"
        copied += [
            "listeners=PLAINTEXT://127.0.0.1:0",
            f"advertised.listeners=PLAINTEXT://{address}",
            f"log.dirs={tmp_path / 'copy'}",
        ]
        path = tmp_path / "copy.properties"
        path.write_text("\n".join(copied))
        done = subprocess.run(
            [*COMMAND, "broker", "start", "--config", str(path)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode != 0
        sentence = f"node.id 2 is registered already: the process at {address} has it since "
        assert sentence in done.stderr
        assert (
            f"The broker at {address} cannot join; stop that process, or give this" in done.stderr
        )
        assert cluster.known() == {1, 2}
        cluster.wait_in_sync("t", SESSION_MS / 1000)
        assert not cluster.has_ended(2)


def test_killed_broker_registers_again_before_its_session_expires(tmp_path: Path) -> None:
    """The new process has the lock of the log directory in which the registration is recorded."""
    options = {"zookeeper.session.timeout.ms": "60000"}
    with BrokerCluster(tmp_path, count=2, options=options) as cluster:
        cluster.create_topic("t", partitions=2)
        for _ in range(2):
            cluster.kill(2)
            cluster.start(2)
            cluster.wait_in_sync("t")
        assert "registration replaced broker=2" in cluster.log(2)
        assert "waiting for the end of the other session" not in cluster.log(2)
