"""Each decision of the controller is logged in one line."""

import logging

import pytest

from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.controller.term_context import log_elections


def image(*leaders: int) -> ClusterImage:
    partitions = (
        PartitionImage(number, leader, 0, isr=(1, 2), replicas=(1, 2))
        for number, leader in enumerate(leaders)
    )
    return ClusterImage().with_topics([TopicImage("t", b"i" * 16, tuple(partitions))])


def test_changed_leaders_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The line lists old and new leader by partition; -1 means no leader."""
    caplog.set_level(logging.INFO)
    log_elections(image(1, 2, 1), image(2, 2, -1))
    (line,) = caplog.messages
    assert line == "leaders elected topic=t count=2 leaders=0:1->2,2:1->-1"


def test_unchanged_leaders_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The leaders of a new topic are not logged, because the creation has its own line."""
    caplog.set_level(logging.INFO)
    log_elections(image(1, 2), image(1, 2))
    log_elections(ClusterImage(), image(1, 2))
    assert caplog.messages == []


def test_many_elections_are_logged_in_one_short_line(caplog: pytest.LogCaptureFixture) -> None:
    """The line contains the number of partitions instead of all of them."""
    caplog.set_level(logging.INFO)
    log_elections(image(*[1] * 1000), image(*[2] * 1000))
    (line,) = caplog.messages
    assert "count=1000 " in line
    assert len(line) < 300
