"""`ottla cluster features`: the levels of features."""

from typing import Any

from ottla.client.admin.features import UpgradeType, level_text, update_features
from ottla.testing import Cluster


def test_levels_of_features_are_listed(run: Any, ottla_cluster: Cluster) -> None:
    """Each feature has the levels that the brokers support, and the one that the cluster uses."""
    rows = {row["feature"]: row for row in run("cluster", "features", "--output", "json").json}
    assert rows["transaction.version"]["max"] >= rows["transaction.version"]["level"]
    before = rows["transaction.version"]
    level = before["level"] - 1
    with ottla_cluster.admin() as brokers:
        levels = {"transaction.version": level}
        update_features(brokers, levels, upgrade_type=UpgradeType.SAFE_DOWNGRADE)
    done = run("cluster", "features", "--broker", "1", "--output", "json")
    (after,) = [row for row in done.json if row["feature"] == "transaction.version"]
    assert (after["level"], after["epoch"] > before["epoch"]) == (level, True)
    done = run("cluster", "features")
    (row,) = [row for row in done.rows if row[0] == "transaction.version"]
    assert row[3] == str(level)
    assert done.errors == f"Epoch {after['epoch']}.\n"


def test_levels_of_metadata_version_are_releases() -> None:
    """Other features have numbers; a level without a release is shown as unknown."""
    assert level_text("metadata.version", 7) == "3.3-IV3"
    assert level_text("metadata.version", 999) == "UNKNOWN [999]"
    assert level_text("metadata.version", 0) == "0"
    assert level_text("kraft.version", 7) == "7"
