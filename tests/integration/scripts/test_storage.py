"""`kafka-storage`: its start, and users of a cluster that it formatted."""

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.client import AdminClient
from ottla.testing import Cluster
from ottla_scripts import entry
from tests.unit.scripts.test_storage import write_config

pytestmark = pytest.mark.slow


def test_ids_need_no_broker() -> None:
    """`random-uuid` starts fast: it imports no part of the broker and no event loop."""
    program = (
        "import sys; from ottla_scripts.entry import run; run('kafka-storage', ['random-uuid']);"
        "print([m for m in sys.modules if m in ('asyncio', 'ottla.server', 'ottla.cluster')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_users_log_in_after_the_first_start(tmp_path: Path) -> None:
    """--add-scram stores credentials with the new cluster, as the quickstart with SASL expects."""
    config = write_config(tmp_path)
    words = ["format", "-s", "-t", "abc", "-c", config, "-S", "SCRAM-SHA-512=[name=bob,password=b]"]
    assert entry.run("kafka-storage", words) == 0
    options = {
        "log.dirs": str(tmp_path / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with (
        Cluster(options=options) as cluster,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        assert cluster.cluster_id == "abc"
        assert list(admin.describe_user_scram_credentials()) == ["bob"]
