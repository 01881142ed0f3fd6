"""The state of a test cluster as its live brokers see it, and waiting for a change of it."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from ottla.base.errors import OttlaError
from ottla.cluster.image import NO_LEADER, PartitionImage
from ottla.cluster.znodes import ConfigNode
from ottla.server.node import Node

T = TypeVar("T")

CHANGE_SECONDS = 5.0
"""The time in which a change of metadata has reached all brokers."""
_POLL_SECONDS = 0.01


def found(look: Callable[[], T | None], lack: str, timeout_seconds: float) -> T:
    """Return what `look` finds, as soon as it does; OttlaError after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    while (result := look()) is None:
        if time.monotonic() > deadline:
            raise OttlaError(f"{lack} after {timeout_seconds:g} s.")
        time.sleep(_POLL_SECONDS)
    return result


def leader_of(nodes: Mapping[int, Node], topic: str, partition: int) -> int | None:
    """Return the live leader of a partition, or None."""
    for node in nodes.values():
        state = _partition(node, topic, partition)
        if state is not None and state.leader in nodes:
            return state.leader
    return None


def controller_of(nodes: Mapping[int, Node]) -> int | None:
    """Return the live broker that is the controller, or None."""
    for broker, node in nodes.items():
        if node.broker.controller.is_active:
            return broker
    return None


def is_in_sync(nodes: Collection[Node], topic: str) -> bool:
    """Return True if each broker knows a topic all of whose replicas are in sync."""
    for node in nodes:
        image = node.broker.image.topic(topic)
        if image is None:
            return False
        for state in image.partitions:
            if state.leader == NO_LEADER or len(state.isr) < len(state.replicas):
                return False
    return True


def wait_for_user(nodes: Sequence[Node], user: str) -> None:
    """Return when all brokers know a user with a password: a change reaches one after the other."""
    key = ConfigNode.sanitize(user)

    def is_known() -> bool | None:
        known = [node.broker.configs.entities(ConfigNode.USERS) for node in nodes]
        return all(key in users for users in known) or None

    found(is_known, f"not all brokers know the user {user!r}", CHANGE_SECONDS)


def wait_until_introduced(nodes: Sequence[Node]) -> None:
    """Return when each broker knows all others, or after a few seconds without a controller."""
    deadline = time.monotonic() + CHANGE_SECONDS
    images = [node.broker.current for node in nodes]
    while any(len(current.image.brokers) < len(images) for current in images):
        if time.monotonic() > deadline:
            return
        time.sleep(_POLL_SECONDS)


def _partition(node: Node, topic: str, partition: int) -> PartitionImage | None:
    image = node.broker.image.topic(topic)
    if image is None or partition >= len(image.partitions):
        return None
    return image.partitions[partition]
