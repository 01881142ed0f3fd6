"""The records that a flush waits for, with a producer that keeps its callbacks."""

from typing import Any

import pytest

from ottla.client.producer.flushes import Flushes, Produce


class _Sender:
    """A producer of librdkafka whose records wait until `report` is called, and its owner."""

    def __init__(self) -> None:
        self.flushes = Flushes(self, self.replace)
        self.send_by = self.flushes.native
        self.is_full = False
        self._callbacks: list[Any] = []

    def __len__(self) -> int:
        return len(self._callbacks)

    def produce(self, topic: str, value: bytes, key: Any, partition: int, *others: Any) -> None:
        if self.is_full:
            raise BufferError
        assert others[:2] == (others[0],) * len(others[:2])
        self._callbacks.append(others[0])

    def poll(self, timeout: float) -> None:
        assert timeout == 0

    def replace(self, former: Produce, new: Produce) -> None:
        if self.send_by is former:
            self.send_by = new

    def send(self, callback: Any, *others: Any) -> None:
        self.send_by("t", b"", None, -1, callback, *others)

    def report(self) -> None:
        self._callbacks[0](None, "report")
        del self._callbacks[0]


@pytest.fixture
def sender() -> _Sender:
    """Return a producer without records."""
    return _Sender()


def _ignore(*_: object) -> None:
    pass


def test_only_earlier_records_are_waited_for(sender: _Sender) -> None:
    """The callback of a later record receives its report as at other times."""
    reports: list[tuple[object, object]] = []
    sender.send(_ignore)
    with sender.flushes.begun() as flush:
        assert sender.flushes.unacknowledged(flush) == 1
        sender.send(lambda *words: reports.append(words))
        sender.send(_ignore, _ignore, 5, [])
        assert (flush.sent, sender.flushes.unacknowledged(flush)) == (2, 1)
        sender.report()
        assert sender.flushes.unacknowledged(flush) == 0
        sender.report()
        assert (sender.flushes.unacknowledged(flush), reports) == (0, [(None, "report")])
    sender.send(_ignore)
    assert flush.sent == 2


def test_each_flush_has_its_own_earlier_records(sender: _Sender) -> None:
    """A record between the begins of two flushes is an earlier one for the second only."""
    with sender.flushes.begun() as first:
        sender.send(_ignore)
        with sender.flushes.begun() as second:
            sender.send(_ignore)
            assert (
                sender.flushes.unacknowledged(first),
                sender.flushes.unacknowledged(second),
            ) == (0, 1)
        sender.send(_ignore)
        assert (first.sent, second.sent) == (3, 1)
        sender.report()
        assert (sender.flushes.unacknowledged(first), sender.flushes.unacknowledged(second)) == (
            0,
            1,
        )


def test_a_refused_record_is_not_counted(sender: _Sender) -> None:
    """It has no report: each one would hide an earlier record."""
    sender.send(_ignore)
    sender.is_full = True
    with sender.flushes.begun() as flush:
        with pytest.raises(BufferError):
            sender.send(_ignore)
        assert sender.flushes.unacknowledged(flush) == 1


def test_records_take_no_detour_without_a_flush(sender: _Sender) -> None:
    """The function that sends is librdkafka's own before and after."""
    native = sender.send_by
    with sender.flushes.begun():
        assert sender.send_by is not native
    assert sender.send_by is native


def test_a_producer_that_is_closed_during_a_flush_remains_closed(sender: _Sender) -> None:
    """The end of the flush restores only a function that it has replaced."""
    with sender.flushes.begun():
        sender.send_by = _ignore
    assert sender.send_by is _ignore
