"""Features of the cluster and the levels that clients may rely on (KIP-584).

A feature is on if its level is finalized for the whole cluster, not if a broker supports it. Pure;
`server/config/features.py` stores the levels. Follows
org.apache.kafka.controller.FeatureControlManager and org.apache.kafka.server.common.Feature.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, Protocol

from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.api_keys import ApiKey

# 1: flexible records in __transaction_state. 2: an epoch for each transaction (KIP-890).
TRANSACTION_VERSION = "transaction.version"
# 1: the consumer group protocol (KIP-848).
GROUP_VERSION = "group.version"


class Range(NamedTuple):
    """The levels of a feature that this broker supports, both ends included."""

    lowest: int
    highest: int


class UpgradeType(IntEnum):
    """The allowed changes of a request; both downgrades are equal here, because none loses data."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class Update(NamedTuple):
    """One feature's new level; `upgrade_type` is a number that may not be a valid UpgradeType."""

    feature: str
    level: int
    upgrade_type: int


class ServedApi(Protocol):
    """An API that this broker serves."""

    @property
    def api_key(self) -> int:
        """Number of the API."""
        ...


def supported(apis: Iterable[ServedApi]) -> dict[str, Range]:
    """Return the features of a broker that serves `apis`."""
    ranges = {TRANSACTION_VERSION: Range(0, 2)}
    if any(api.api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT for api in apis):
        ranges[GROUP_VERSION] = Range(0, 1)
    return ranges


def defaults(ranges: Mapping[str, Range]) -> dict[str, int]:
    """Return the levels of a new cluster: the highest."""
    return {name: levels.highest for name, levels in ranges.items() if levels.highest}


def updated(
    ranges: Mapping[str, Range],
    levels: Mapping[str, int],
    updates: Iterable[Update],
    broker_id: int,
) -> dict[str, int]:
    """Return the levels after all updates.

    Raises ApiError INVALID_UPDATE_VERSION for the first update that is rejected. A feature with
    level 0 is off and is not stored.
    """
    changed = dict(levels)
    for update in updates:
        reason = _refusal(ranges, levels.get(update.feature, 0), update, broker_id)
        if reason is not None:
            raise ApiError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"Invalid update version {update.level} for feature {update.feature}. {reason}",
            )
        changed[update.feature] = update.level
    return {name: level for name, level in changed.items() if level}


def _refusal(
    ranges: Mapping[str, Range], current: int, update: Update, broker_id: int
) -> str | None:
    if update.upgrade_type not in list(UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    supported = ranges.get(update.feature)
    controller = f"Local controller {broker_id}"
    if supported is None:
        return f"{controller} does not support this feature."
    if not supported.lowest <= update.level <= supported.highest:
        return f"{controller} only supports versions {supported.lowest}-{supported.highest}"
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if update.level < current and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if update.level > current and not is_upgrade:
        return "Can't downgrade to a newer version."
    return None
