"""One line of the log for each decision of the controller."""

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


def test_leaders_that_change_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """From whom to whom, by partition; -1 is nobody."""
    caplog.set_level(logging.INFO)
    log_elections(image(1, 2, 1), image(2, 2, -1))
    (line,) = caplog.messages
    assert line == "leaders elected topic=t count=2 leaders=0:1->2,2:1->-1"


def test_what_stays_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """Nor the leaders of a new topic: its own line says that it is there."""
    caplog.set_level(logging.INFO)
    log_elections(image(1, 2), image(1, 2))
    log_elections(ClusterImage(), image(1, 2))
    assert caplog.messages == []


def test_one_line_does_not_name_a_thousand_partitions(caplog: pytest.LogCaptureFixture) -> None:
    """It says how many there are."""
    caplog.set_level(logging.INFO)
    log_elections(image(*[1] * 1000), image(*[2] * 1000))
    (line,) = caplog.messages
    assert "count=1000 " in line
    assert len(line) < 300
