"""The election of the active instance: the pure decision."""

import json

from ottla.streams.application.election import (
    Candidate,
    ElectionResult,
    elect,
)


def test_the_active_instance_stays_active() -> None:
    """Otherwise the instance that has waited longest becomes active."""
    old, young = Candidate("old", 1), Candidate("young", 2)
    assert elect([young, old]).active == "old"
    assert elect([old, Candidate("young", 2, is_active=True)]).active == "young"


def test_an_election_result_is_encoded_and_decoded() -> None:
    """It contains all instances, the active one first."""
    verdict = elect([Candidate("b", 2, "b:1"), Candidate("a", 1, asks_shutdown=True)])
    assert ElectionResult.decode(verdict.encode()) == verdict
    assert verdict.is_shutdown
    assert [instance.instance for instance in verdict.instances] == ["a", "b"]


def test_an_instance_without_metrics_is_readable_by_older_versions() -> None:
    """Older versions do not know the field, so it is encoded only if it is set."""
    plain, serving = Candidate("a", 1), Candidate("b", 2, metrics="127.0.0.1:1")
    for candidate in (plain, serving):
        assert Candidate(**json.loads(candidate.encode())) == candidate
    assert b"metrics" not in plain.encode()
    verdict = elect([plain])
    assert b"metrics" not in verdict.encode()
    both = elect([plain, serving])
    assert ElectionResult.decode(both.encode()) == both
