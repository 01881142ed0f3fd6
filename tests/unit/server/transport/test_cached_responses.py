"""Cached responses that are valid as long as their image of the cluster."""

import pytest

from ottla.server.transport import cached_responses
from ottla.server.transport.cached_responses import CachedResponses


def test_same_request_is_answered_from_the_cache() -> None:
    """A response is cached as long as the image is the same object."""
    cache, image = CachedResponses(), object()
    assert cache.find(image, ("q",)) is None
    cache.keep(image, ("q",), b"answer")
    assert cache.find(image, ("q",)) == b"answer"
    assert cache.find(image, ("other",)) is None


def test_new_image_clears_the_cache() -> None:
    """No response of an earlier image is returned."""
    cache, image = CachedResponses(), object()
    cache.find(image, ("q",))
    cache.keep(image, ("q",), b"answer")
    assert cache.find(object(), ("q",)) is None
    assert cache.find(image, ("q",)) is None


def test_response_of_an_earlier_image_is_not_cached() -> None:
    """The image changed while the response was encoded."""
    cache, old, new = CachedResponses(), object(), object()
    cache.find(new, ("q",))
    cache.keep(old, ("q",), b"old")
    assert cache.find(new, ("q",)) is None


def test_memory_is_bounded(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Large responses are not cached, and many small ones are evicted."""
    monkeypatch.setattr(cached_responses, "_BYTES_MAX", 1000)
    monkeypatch.setattr(cached_responses, "_RESPONSE_BYTES_MAX", 500)
    cache, image = CachedResponses(), object()
    cache.find(image, ("large",))
    cache.keep(image, ("large",), b"x" * 501)
    assert cache.find(image, ("large",)) is None
    for number in range(10):
        cache.keep(image, (number,), b"x" * 300)
    assert sum(cache.find(image, (number,)) is not None for number in range(10)) <= 3
    assert cache.find(image, (9,)) is not None


def test_size_of_requests_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client cannot fill the memory with large requests that have small responses."""
    monkeypatch.setattr(cached_responses, "_BYTES_MAX", 1000)
    monkeypatch.setattr(cached_responses, "_RESPONSE_BYTES_MAX", 500)
    cache, image = CachedResponses(), object()
    cache.find(image, ())
    cache.keep(image, (9, b"q" * 500), b"a")
    assert cache.find(image, (9, b"q" * 500)) is None
    for number in range(4):
        cache.keep(image, (number, b"q" * 400), b"a")
    assert sum(cache.find(image, (number, b"q" * 400)) is not None for number in range(4)) == 2
