"""The refusals of records that a worker remembers, and the sizes of batches."""

from collections.abc import Callable

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.records import TopicPartition
from ottla.streams.local.sending.refused import RefusedRecord, RefusedRecords, SentRecord
from ottla.streams.model.raw import ProducedRecord
from ottla.streams.model.records import RecordMetadata

_LIMIT = 1_000


class Fixture:
    """The refusals of a worker on a clock of its own; a topic takes batches of 1 000 bytes."""

    def __init__(self, find_limit: Callable[[str], int] = lambda topic: _LIMIT) -> None:
        self.now = 0.0
        self.refusals = RefusedRecords(find_limit, clock=lambda: self.now)

    def note(self, code: ErrorCode, *values: bytes, offset: int = 7) -> list[bytes | None]:
        """Note the refusal of these results of an input; return those that are at fault."""
        rows = [
            RefusedRecord(
                SentRecord(_record(value), (_input(offset), None, 0, ()), None), ApiError(code)
            )
            for value in values
        ]
        return [row.sent.record.value for row in self.refusals.note(rows)]

    def is_refused(self, value: bytes, offset: int = 7) -> bool:
        """Return True if a result of an input is refused before it is sent."""
        try:
            self.refusals.check(_record(value), _input(offset))
        except ApiError:
            return True
        return False


def _record(value: bytes) -> ProducedRecord:
    return ProducedRecord("out", b"k", value, 5, ())


def _input(offset: int) -> RecordMetadata:
    return RecordMetadata("in", 0, offset)


def test_only_records_that_are_too_large_by_themselves_are_at_fault() -> None:
    """The small records of the batch are sent again, and records of the same size are refused."""
    run = Fixture()
    assert run.note(ErrorCode.MESSAGE_TOO_LARGE, b"a", b"x" * _LIMIT, b"b") == [b"x" * _LIMIT]
    assert run.is_refused(b"y" * _LIMIT, offset=8)
    assert not run.is_refused(b"a")


def test_batches_of_a_topic_with_a_known_maximum_fit() -> None:
    """A batch ends before a record for which it has no space; other topics have no such limit."""
    run = Fixture()
    assert not run.refusals.begins_batch(_record(b"x" * 600))
    run.note(ErrorCode.MESSAGE_TOO_LARGE, b"x" * 600)
    begins = [run.refusals.begins_batch(_record(b"x" * 300)) for _ in range(5)]
    assert begins == [False, False, True, False, True]
    run.refusals.note_sent()
    assert not run.refusals.begins_batch(_record(b"x" * 600))


def test_a_maximum_that_was_raised_is_used_after_a_while() -> None:
    """The topic takes the record then."""
    limits = [_LIMIT, 5_000]
    run = Fixture(lambda topic: limits.pop(0))
    run.note(ErrorCode.MESSAGE_TOO_LARGE, b"x" * _LIMIT)
    assert run.is_refused(b"x" * _LIMIT)
    run.now = 31.0
    assert not run.is_refused(b"x" * _LIMIT)


def test_a_topic_that_refuses_all_records_is_tried_again_after_a_while() -> None:
    """Access may have been granted."""
    run = Fixture()
    assert run.note(ErrorCode.TOPIC_AUTHORIZATION_FAILED, b"a") == [b"a"]
    assert run.is_refused(b"b", offset=9)
    run.now = 31.0
    assert not run.is_refused(b"b", offset=9)


def test_an_invalid_record_is_refused_as_a_result_of_the_same_input_only() -> None:
    """The commit of that input ends the knowledge."""
    run = Fixture()
    assert run.note(ErrorCode.INVALID_RECORD, b"a") == [b"a"]
    assert run.is_refused(b"a")
    assert not run.is_refused(b"a", offset=8)
    assert not run.is_refused(b"b")
    key = TopicPartition("in", 0)
    run.refusals.forget({key: (7, "")})
    assert run.is_refused(b"a")
    run.refusals.forget({key: (8, "")})
    assert not run.is_refused(b"a")


def test_an_unknown_maximum_is_an_error() -> None:
    """The handler is not called for records that may be small; the error has the reason."""

    def denied(topic: str) -> int:
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    run = Fixture(denied)
    with pytest.raises(ApiError) as caught:
        run.note(ErrorCode.MESSAGE_TOO_LARGE, b"a")
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "max.message.bytes of out is not known" in caught.value.__notes__[0]


def test_endless_refusals_of_one_input_are_an_error() -> None:
    """A topology whose results are others each time does not loop."""
    run = Fixture()
    with pytest.raises(ApiError):
        for number in range(100):
            run.note(ErrorCode.INVALID_RECORD, b"%d" % number)
    assert not run.is_refused(b"other")
