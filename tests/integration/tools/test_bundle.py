"""`ottla debug bundle` has the facts of a cluster, and no secrets."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ottla.client.admin import offsets
from ottla.testing import Cluster
from ottla.tools.debug import collecting
from ottla.tools.debug.redaction import REMOVED
from tests.integration.tools.test_mirror import produce

_SECRETS = ("hunter2", "s3cr3t", "tok-123")


def files_of(path: Path) -> dict[str, bytes]:
    """Return the contents of an archive by name."""
    with tarfile.open(path) as archive:
        return {
            member.name.partition("/")[2]: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive.getmembers()
        }


def test_bundle_has_the_facts_and_no_records(
    run: Any, ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """Topics, offsets, groups, options, directories; never the contents of records."""
    produce(ottla_cluster, "orders", [b"hunter2"], key=b"s3cr3t", headers=[("h", b"tok-123")])
    with ottla_cluster.admin() as brokers:
        offsets.commit_offsets(brokers, "g", {("orders", 0): offsets.CommittedOffset(1)})
    path = tmp_path / "a.tar.gz"
    done = run("debug", "bundle", str(path), "--output", "json")
    files = files_of(path)
    assert done.json["files"] == list(files)
    assert json.loads(files["topics.json"])["offsets"]["orders-0"] == [0, 1]
    assert json.loads(files["groups.json"])[0]["offsets"] == {"orders-0": 1}
    assert json.loads(files["log-directories.json"])["1"][0]["replicas"]["orders-0"] > 0
    assert "retention.ms" in files["topic-options.json"].decode()
    assert not [name for name, text in files.items() if any(s.encode() in text for s in _SECRETS)]


def test_secrets_of_options_are_removed(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that would send its secrets has them removed by the names of the options."""
    entries = {
        "ssl.keystore.password": "hunter2",
        "listener.name.x.scram-sha-256.sasl.jaas.config": 'Login required password="s3cr3t";',
        "my.endpoint": "https://user:tok-123@host/path",
        "harmless.name": "x password=hunter2 y",
        "log.dirs": "/data",
    }

    class Entry:
        is_sensitive = False

        def __init__(self, name: str, value: str) -> None:
            self.name, self.value = name, value
            self.source = collecting.configs.ConfigSource.STATIC_BROKER_CONFIG

    monkeypatch.setattr(
        collecting.configs,
        "describe_config",
        lambda *arguments, **options: [Entry(*pair) for pair in entries.items()],
    )
    path = tmp_path / "a.tar.gz"
    assert run("debug", "bundle", str(path)).code == 0
    text = b"".join(files_of(path).values()).decode()
    assert not [secret for secret in _SECRETS if secret in text]
    assert "/data" in text
    assert text.count(REMOVED) >= 4


def test_part_that_fails_is_recorded(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file has the error, and the others are complete."""

    def fail(*arguments: object, **options: object) -> None:
        raise OSError("no luck")

    monkeypatch.setattr(collecting.groups, "list_groups", fail)
    path = tmp_path / "a.tar.gz"
    assert run("debug", "bundle", str(path)).code == 0
    files = files_of(path)
    assert json.loads(files["groups.json"]) == {"error": "no luck"}
    assert "cluster_id" in files["cluster.json"].decode()


def test_existing_file_is_kept(run: Any, tmp_path: Path) -> None:
    """The command names it, and writes nothing."""
    path = tmp_path / "a.tar.gz"
    path.write_bytes(b"mine")
    done = run("debug", "bundle", str(path))
    assert done.code == 1
    assert "exists, and was not changed" in done.errors
    assert path.read_bytes() == b"mine"
