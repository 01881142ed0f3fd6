"""The rate limit of a copy."""

import pytest

from ottla.client.raw.consumer import ConsumedRecord
from ottla.operations.mirror.limits import RateLimit

_RECORD = ConsumedRecord("a", 0, 0, 1, "create", b"k" * 10, b"v" * 80, [("h", b"1" * 9), ("", None)])  # fmt: skip


def test_time_is_owed_for_bytes() -> None:
    """A record of 100 bytes at 50 bytes per second takes two seconds; pauses are no credit."""
    limit = RateLimit(50)
    assert (limit.wait_s(100.0), limit.is_reached(100.0)) == (0.0, False)
    limit.count(_RECORD, 100.0)
    limit.count(_RECORD, 101.0)
    assert (limit.wait_s(101.0), limit.is_reached(101.0)) == (pytest.approx(3.0), True)
    assert (limit.wait_s(103.75), limit.is_reached(103.75)) == (pytest.approx(0.25), False)
    limit.count(_RECORD, 200.0)
    assert limit.wait_s(200.0) == pytest.approx(2.0)


def test_without_a_limit_a_copy_never_waits() -> None:
    """No limit is the default."""
    limit = RateLimit(None)
    limit.count(_RECORD, 100.0)
    assert (limit.wait_s(100.0), limit.is_reached(100.0)) == (0.0, False)
