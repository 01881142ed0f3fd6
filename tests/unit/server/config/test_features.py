"""The finalized features in the tree: written once, read by every broker, updated with checks."""

import asyncio
import json

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.tasks import Tasks
from ottla.cluster.features import Range, Update, UpgradeType
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.server.config.features import Features
from ottla.testing.sim.files import SimFileSystem

RANGES = {"transaction.version": Range(0, 2)}
DOWN = [Update("transaction.version", 0, UpgradeType.SAFE_DOWNGRADE)]


def tree() -> EmbeddedTree:
    return EmbeddedTree(SimFileSystem(), RealClock())


async def test_new_cluster_gets_the_highest_levels() -> None:
    """The node has the JSON of Apache Kafka 3.9, and the epoch is the node's version."""
    session = tree().session()
    features = Features(RANGES, Tasks())
    assert features.level("transaction.version") == 0
    await features.start(session)
    assert features.level("transaction.version") == 2
    assert features.epoch == 0
    data, _ = await session.get("/feature")
    levels = {"transaction.version": {"max_version_level": 2}}
    assert json.loads(data) == {"features": levels, "version": 2, "status": 1}


async def test_levels_stay_and_other_brokers_follow() -> None:
    """A start does not enable a feature that was disabled."""
    there = tree()
    tasks = Tasks()
    features, other = Features(RANGES, tasks), Features(RANGES, tasks)
    await features.start(there.session())
    await other.start(there.session())
    await features.update(DOWN, 1, validate_only=False)
    assert (features.level("transaction.version"), features.epoch) == (0, 1)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (other.level("transaction.version"), other.epoch) == (0, 1)
    later = Features(RANGES, tasks)
    await later.start(there.session())
    assert later.level("transaction.version") == 0
    await tasks.close()


async def test_rejected_and_validate_only_updates_change_nothing() -> None:
    """Neither the node nor the broker's levels change."""
    session = tree().session()
    features = Features(RANGES, Tasks())
    await features.start(session)
    await features.update(DOWN, 1, validate_only=True)
    refused = [*DOWN, Update("x", 1, UpgradeType.UPGRADE)]
    with pytest.raises(ApiError) as error:
        await features.update(refused, 1, validate_only=False)
    assert error.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert (features.level("transaction.version"), features.epoch) == (2, 0)


async def test_disabled_node_means_that_every_feature_is_off() -> None:
    """A Kafka broker before 2.7 leaves such a node."""
    session = tree().session()
    await session.create("/feature", b'{"version": 1, "status": 0, "features": {}}')
    features = Features(RANGES, Tasks())
    await features.start(session)
    assert features.levels == {}


async def test_update_without_the_tree_is_retriable() -> None:
    """The error is NOT_CONTROLLER, because another broker may succeed."""
    session = tree().session()
    features = Features(RANGES, Tasks())
    await features.start(session)
    await session.close()
    with pytest.raises(ApiError) as error:
        await features.update(DOWN, 1, validate_only=False)
    assert error.value.code is ErrorCode.NOT_CONTROLLER
