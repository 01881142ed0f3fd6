"""Encoded answers that are kept as long as the image they were made from."""

from ottla.server.transport import cached_responses
from ottla.server.transport.cached_responses import KeptAnswers


def test_the_same_request_is_answered_from_memory() -> None:
    """As long as the image is the same object."""
    kept, image = KeptAnswers(), object()
    assert kept.find(image, ("q",)) is None
    kept.keep(image, ("q",), b"answer")
    assert kept.find(image, ("q",)) == b"answer"
    assert kept.find(image, ("other",)) is None


def test_a_new_image_forgets_everything() -> None:
    """Nothing of the past is told."""
    kept, image = KeptAnswers(), object()
    kept.find(image, ("q",))
    kept.keep(image, ("q",), b"answer")
    assert kept.find(object(), ("q",)) is None
    assert kept.find(image, ("q",)) is None


def test_an_answer_of_a_former_image_is_not_kept() -> None:
    """It took longer to make than the image lived."""
    kept, old, new = KeptAnswers(), object(), object()
    kept.find(new, ("q",))
    kept.keep(old, ("q",), b"old")
    assert kept.find(new, ("q",)) is None


def test_memory_is_bounded(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Large answers are not kept, many small ones make room."""
    monkeypatch.setattr(cached_responses, "_BYTES_MAX", 1000)
    monkeypatch.setattr(cached_responses, "_ANSWER_BYTES_MAX", 500)
    kept, image = KeptAnswers(), object()
    kept.find(image, ("large",))
    kept.keep(image, ("large",), b"x" * 501)
    assert kept.find(image, ("large",)) is None
    for number in range(10):
        kept.keep(image, (number,), b"x" * 300)
    assert sum(kept.find(image, (number,)) is not None for number in range(10)) <= 3
    assert kept.find(image, (9,)) is not None
