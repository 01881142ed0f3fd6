"""Elections of leaders."""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.client.admin.replicas import elect_leaders
from ottla.client.brokers import Brokers
from ottla.wire.messages.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


def test_leaders_elected_before_a_repeated_request_are_returned(
    cluster: Any, brokers: Brokers
) -> None:
    """The second request finds the first partition elected already."""
    answers = [
        [ErrorCode.NONE, ErrorCode.NOT_CONTROLLER],
        [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.NONE],
    ]

    def answer(_: Any) -> ElectLeadersResponse:
        codes = answers.pop(0)
        rows = [
            PartitionResult(partition_id=number, error_code=int(code))
            for number, code in enumerate(codes)
        ]
        result = ReplicaElectionResult(topic="t", partition_result=rows)
        return ElectLeadersResponse(replica_election_results=[result])

    cluster.answers["ElectLeaders"] = answer
    assert elect_leaders(brokers) == [("t", 0), ("t", 1)]
    assert not answers
