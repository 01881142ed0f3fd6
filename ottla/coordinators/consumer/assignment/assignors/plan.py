"""The input and output of an assignor.

Follows Kafka's GroupSpec and GroupAssignment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ottla.coordinators.consumer.state import TargetAssignment


class MemberPlan(NamedTuple):
    """One member: the ids of the topics it reads, and its current target."""

    topics: frozenset[bytes]
    target: TargetAssignment
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The members in the order of assignment, and the partition count of each topic."""

    members: Mapping[str, MemberPlan]
    partition_counts: Mapping[bytes, int]

    @property
    def is_homogeneous(self) -> bool:
        """True if all members read the same topics."""
        return len({member.topics for member in self.members.values()}) <= 1


Assignments: TypeAlias = dict[str, TargetAssignment]
Assignor: TypeAlias = Callable[[GroupPlan], Assignments]


def frozen(assignment: Mapping[bytes, set[int]]) -> TargetAssignment:
    """Return an assignment as it is stored: without topics that have no partitions."""
    return {topic: frozenset(partitions) for topic, partitions in assignment.items() if partitions}
