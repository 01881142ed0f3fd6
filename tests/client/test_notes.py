"""The notes' programs run against Ottla."""

import threading
import time
from collections.abc import Callable

import pytest

from examples.notes import consumer_threads
from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import groups
from ottla.client.brokers import Brokers
from ottla.testing import Cluster
from tests.client.notes import CHECKS, topic_with

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("check", CHECKS)
def test_program_of_the_notes(cluster: Cluster, check: Callable[[str], None]) -> None:
    """Each program does on Ottla what the notes say."""
    check(cluster.bootstrap)


def test_thread_that_joins_late_gets_a_partition(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread starts once the group of the earlier ones is complete, which is divided again."""
    start = threading.Thread.start

    def start_late(thread: threading.Thread) -> None:
        _, is_member, number = thread.name.partition("thread-")
        if is_member and int(number):
            _wait_for_members(cluster, "notes-threads-late", int(number))
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_late)
    readers = consumer_threads.main(cluster.bootstrap, topic_with(cluster.bootstrap, "late", 12))
    assert sorted(len(names) for names in readers.values()) == [1, 1, 1]
    assert set.union(*readers.values()) == {"thread-0", "thread-1", "thread-2"}


def _wait_for_members(cluster: Cluster, group: str, count: int) -> None:
    deadline = time.monotonic() + 30
    with cluster.admin() as brokers:
        while (result := _stable_members(brokers, group)) != count:
            assert time.monotonic() < deadline, result


def _stable_members(brokers: Brokers, group: str) -> int | None:
    """Return the number of members; None while the group does not exist or divides partitions."""
    try:
        description = groups.describe_group(brokers, group)
    except ApiError as error:
        assert error.code is ErrorCode.GROUP_ID_NOT_FOUND, error
        return None
    return len(description.members) if description.state == "Stable" else None
