"""`ottla streams reset` against a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.client.admin.offsets import CommittedOffset, commit_offsets
from ottla.streams.election import Candidate, Election, ElectionSettings
from ottla.testing import Cluster

_QUERY = "3f0c9a52-0000-4000-8000-000000000000"


@pytest.fixture
def state_dir(ottla_cluster: Cluster, tmp_path: Path) -> Path:
    """What an application leaves: topics, groups and a checkpoint; and topics that are not its own."""
    for topic in ("words", "app-my-topic", "app-counts-changelog", "app-x-repartition"):
        ottla_cluster.create_topic(topic)
    checkpoint = tmp_path / "app" / "0"
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": _QUERY}))
    with ottla_cluster.admin() as brokers:
        for group in ("app", f"ottla-sink-{_QUERY}", "other"):
            commit_offsets(brokers, group, {("words", 0): CommittedOffset(0)})
    return tmp_path


def test_a_reset_is_shown_and_then_done(run: Any, ottla_cluster: Cluster, state_dir: Path) -> None:
    """Dry run first; inputs and other groups stay."""
    words = ("streams", "reset", "--application-id", "app", "--state-dir", str(state_dir))
    done = run(*words, "--output", "json")
    expected = [
        ("group", "app"),
        ("group", f"ottla-sink-{_QUERY}"),
        ("topic", "app-counts-changelog"),
        ("topic", "app-x-repartition"),
        ("checkpoint", str(state_dir / "app")),
    ]
    assert [(row["kind"], row["name"]) for row in done.json] == expected
    assert not any(row["executed"] for row in done.json)
    assert (state_dir / "app").exists()
    elsewhere = run(*words[:-1], str(state_dir / "elsewhere"))
    assert "There is no checkpoint in" in elsewhere.errors
    assert "Give --state-dir" in elsewhere.errors
    executed = run(*words, "--execute")
    assert (executed.code, executed.errors) == (0, "Removed: app begins anew when it is started.\n")
    assert not (state_dir / "app").exists()
    assert sorted(ottla_cluster.topics()) == ["app-my-topic", "words"]
    assert run("group", "list", "--output", "json").json[0]["group"] == "other"
    assert "There is nothing of app" in run(*words).errors


def test_a_reset_is_refused_while_an_instance_runs(
    run: Any, ottla_cluster: Cluster, state_dir: Path
) -> None:
    """It would write what was removed."""
    settings = ElectionSettings(ottla_cluster.bootstrap, "app", heartbeat_interval_ms=50)
    election = Election(settings, Candidate("running", 1), lambda: None)
    election.start()
    words = ("streams", "reset", "--application-id", "app", "--state-dir", str(state_dir))
    while run(*words).code == 0:
        continue
    done = run(*words, "--execute")
    assert done.code == 1
    assert "'app' cannot be reset now: 1 instance runs" in done.errors
    election.stop()
    assert (state_dir / "app").exists()
    assert run(*words, "--execute").code == 0
