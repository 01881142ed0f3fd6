"""What an assignor is asked, and what it answers.

Follows Kafka's GroupSpec and GroupAssignment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ottla.coordinators.consumer.state import TargetAssignment


class MemberPlan(NamedTuple):
    """One member: the ids of the topics it reads, and what it shall have so far."""

    topics: frozenset[bytes]
    target: TargetAssignment
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The members in the order in which they are served, and the partition count of each topic."""

    members: Mapping[str, MemberPlan]
    partition_counts: Mapping[bytes, int]

    @property
    def is_homogeneous(self) -> bool:
        """Tell whether all members read the same topics."""
        return len({member.topics for member in self.members.values()}) <= 1


Assignments: TypeAlias = dict[str, TargetAssignment]
Assignor: TypeAlias = Callable[[GroupPlan], Assignments]


def frozen(assignment: Mapping[bytes, set[int]]) -> TargetAssignment:
    """Return an assignment as it is kept: without topics that have nothing."""
    return {topic: frozenset(places) for topic, places in assignment.items() if places}
