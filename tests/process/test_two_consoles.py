"""Two consoles with one folder: one of them writes and notifies, the other takes over."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ottla.console.accounts.database import FILE_NAME
from ottla.console.alerts.channels import Channel, ChannelKind
from ottla.console.alerts.rules import Rule, RuleKind
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings, open_console
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from ottla.testing.process import COMMAND
from tests.console.session import PASSWORD, ConsoleSession

pytestmark = pytest.mark.slow

_PATIENCE_S = 60
_SENTENCE = "Another console of this folder samples live and sends its alerts"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a cluster with two partitions."""
    with Cluster() as running:
        running.create_topic("orders", partitions=2)
        yield running


def settings_of(cluster: Cluster, folder: Path) -> ConsoleSettings:
    """Return the settings of a console that reads often; its cluster `dead` does not respond."""
    clusters = ClusterSettings("live", cluster.bootstrap), ClusterSettings("dead", "127.0.0.1:1")
    return ConsoleSettings(
        clusters, folder / FILE_NAME, port=0, first_password=PASSWORD, sample_s=0.1
    )


def until(is_reached: Callable[[], bool], what: str) -> None:
    """Wait until something is reached."""
    pause, deadline = threading.Event(), time.monotonic() + _PATIENCE_S
    while not is_reached():
        assert time.monotonic() < deadline, what
        pause.wait(0.05)


def test_a_killed_console_is_replaced_by_the_other(cluster: Cluster, tmp_path: Path) -> None:
    """Each partition has one span and the dead cluster one notification, before and after it."""
    settings = settings_of(cluster, tmp_path)
    with closing(open_console(settings)) as console:
        channel = console.alerts.store.add_channel(
            Channel("refused", ChannelKind.WEBHOOK, "http://127.0.0.1:1/")
        )
        console.alerts.store.add_rule(
            Rule("away", RuleKind.UNAVAILABLE, for_s=0, channels=(channel,))
        )
    names = [f"live={cluster.bootstrap}", "dead=127.0.0.1:1"]
    arguments = ["console", "--data", str(tmp_path), "--console-port", "0"]
    first = subprocess.Popen(
        [*COMMAND, *arguments, *(word for name in names for word in ("--cluster", name))],
        stdout=subprocess.DEVNULL,
    )
    second = ConsoleServer(settings)
    try:
        with closing(open_console(settings)) as reader:
            until(lambda: len(reader.timeline.partitions("live")) == 2, "no timeline")
            until(lambda: len(reader.alerts.store.deliveries()) == 1, "no notification")
        second.start()
        console = second.console
        assert console.locks.is_with_other("live")
        assert console.locks.is_with_other("dead")
        session = ConsoleSession(second.url)
        session.login("admin", PASSWORD)
        assert _SENTENCE in session.get("/c/live/overview").text
        assert "samples live, dead and sends" in session.get("/alerts").text
        first.kill()
        first.wait()
        written = console.timeline.periods("live")[-1].end_ms
        until(lambda: console.timeline.periods("live")[-1].end_ms > written, "not taken over")
        until(lambda: console.locks.holds("dead"), "not taken over")
        assert _SENTENCE not in session.get("/c/live/overview").text
        console.sampler.sample(console.clusters.get("dead"))
        console.alerts.wait()
        assert len(console.timeline.partitions("live")) == 2
        assert len(console.alerts.store.deliveries()) == 1
        assert len(console.alerts.store.incidents()) == 1
    finally:
        first.kill()
        first.wait()
        second.stop()
