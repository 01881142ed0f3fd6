"""Applications that start again: with their state on disk, without it, and as static members."""

import contextlib
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from ottla.streams import (
    InvalidStateStoreError,
    KafkaStreams,
    StreamsError,
)
from ottla.testing import Cluster
from tests.integration.streams.local.applications import WAIT_S, counting, produce
from tests.process.broker_cluster import wait

_KEYS = "abcdefgh"


class Restarts:
    """An application that counts words, with its state below a folder."""

    def __init__(self, cluster: Cluster, folder: Path, log: pytest.LogCaptureFixture) -> None:
        cluster.create_topic("words", partitions=2)
        log.set_level("INFO", "ottla.streams")
        self._cluster, self._log = cluster, log
        self.folder = folder
        self._counted = 0

    def app(self, **options: Any) -> KafkaStreams:
        """Return the application."""
        return counting(
            self._cluster.bootstrap,
            state_dir=str(self.folder),
            processing_guarantee="exactly_once_v2",
            **options,
        )

    def produce(self) -> None:
        """Produce a record for each key."""
        produce(self._cluster, _KEYS)
        self._counted += 1

    def count(self, **options: Any) -> int:
        """Produce, run the application until it is idle, and return how much it has restored.

        Each key has been counted once more than before.
        """
        self._log.clear()
        self.produce()
        with self.app(**options) as app:
            app.await_idle(WAIT_S)
            counts = dict(app.store("counts", is_local=True).all())
        assert counts == dict.fromkeys(_KEYS, self._counted)
        return self.restored()

    def restored(self) -> int:
        """Return the number of restored records since the last call of `count`."""
        return sum(map(int, re.findall(r"restored records: (\d+)", self._log.text)))


@pytest.fixture
def restarts(ottla_cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Restarts:
    """An application that has run once."""
    restarts = Restarts(ottla_cluster, tmp_path / "state", caplog)
    assert restarts.count() == 0
    return restarts


def test_nothing_is_restored_after_a_close(restarts: Restarts) -> None:
    """The state on disk has the last commit."""
    assert restarts.count() == 0


def test_a_lost_state_dir_is_restored(restarts: Restarts) -> None:
    """Each key has one record in the changelogs."""
    shutil.rmtree(restarts.folder)
    assert restarts.count() == len(_KEYS)
    assert restarts.count() == 0


def test_clean_up_deletes_the_state_of_a_closed_application(restarts: Restarts) -> None:
    """The next start restores it; an application that runs refuses."""
    with restarts.app() as app:
        app.await_running(WAIT_S)
        with pytest.raises(StreamsError, match="needs a closed application: it is RUNNING"):
            app.clean_up()
    app.clean_up()
    assert list(restarts.folder.rglob("state.db")) == []
    assert restarts.count() == len(_KEYS)


def test_stores_in_memory_leave_no_files(restarts: Restarts) -> None:
    """They are restored at each start."""
    restarts.app().clean_up()
    for times in (1, 2):
        restored = restarts.count(default_dsl_store="in_memory")
        assert restored == len(_KEYS) * times
    assert list(restarts.folder.rglob("state.db")) == []


def _local_counts(app: KafkaStreams) -> dict[str, int]:
    with contextlib.suppress(InvalidStateStoreError):
        return dict(app.store("counts", is_local=True).all())
    return {}


def test_a_static_member_that_starts_again_has_its_tasks(
    restarts: Restarts, caplog: pytest.LogCaptureFixture
) -> None:
    """Within its session no task moves: the other member keeps exactly its own."""
    left = restarts.app(group_instance_id="left")
    with left, restarts.app(group_instance_id="right") as right:
        apps = left, right
        wait(lambda: all(map(_local_counts, apps)), "each instance has a task", WAIT_S)
        rows = [_local_counts(app) for app in apps]
        assert sorted([*rows[0], *rows[1]]) == list(_KEYS)
        right.close()
        caplog.clear()
        restarts.produce()
        with restarts.app(group_instance_id="right") as again:
            again.await_idle(WAIT_S)
            assert _local_counts(again) == dict.fromkeys(rows[1], 2)
            assert _local_counts(left) == dict.fromkeys(rows[0], 2)
    assert restarts.restored() == 0
