"""Levels of features, as one broker knows them."""

import time

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.features import UpgradeType, read_features, update_features
from ottla.testing import Cluster


def test_broker_that_does_not_run_is_refused_at_once(ottla_cluster: Cluster) -> None:
    """A retry would wait for it; the error names the brokers that run."""
    started = time.monotonic()
    with (
        ottla_cluster.admin() as brokers,
        pytest.raises(ApiError, match=r"^Broker 7 is not running; there are: 1\.$") as caught,
    ):
        read_features(brokers, 7)
    assert caught.value.code is ErrorCode.BROKER_NOT_AVAILABLE
    assert time.monotonic() - started < ottla_cluster.admin().timeout_s / 2


def test_levels_are_changed_all_or_none(ottla_cluster: Cluster) -> None:
    """A feature that the cluster lacks leaves the others unchanged."""
    with ottla_cluster.admin() as brokers:
        with pytest.raises(ApiError, match=r"the following feature had an error: .*nonsense"):
            update_features(
                brokers,
                {"transaction.version": 1, "nonsense": 1},
                upgrade_type=UpgradeType.SAFE_DOWNGRADE,
            )
        levels = {row.name: row.level for row in read_features(brokers, 1).features}
        assert levels["transaction.version"] == 2
