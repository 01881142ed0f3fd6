"""The assignor `range`: a range of consecutive partitions of each topic for each member.

Topics with equal partition counts are split equally, so that records with the same key go to one
member. Static members come first, ordered by instance id, so that their ranges are stable when
others join and leave. Follows Kafka's RangeAssignor.
"""

from ottla.coordinators.consumer.assignment.assignors.plan import Assignments, GroupPlan, frozen

NAME = "range"


def assign(plan: GroupPlan) -> Assignments:
    """Split every topic into one range for each reader; the first readers get the remainder."""
    order = sorted(plan.members, key=lambda member_id: _rank(plan, member_id))
    assignments: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in order}
    for topic, count in plan.partition_counts.items():
        readers = [name for name in order if topic in plan.members[name].topics]
        if not readers:
            continue
        shortest, longer = divmod(count, len(readers))
        start = 0
        for position, member_id in enumerate(readers):
            end = start + shortest + (position < longer)
            assignments[member_id][topic] = set(range(start, end))
            start = end
    return {member_id: frozen(topics) for member_id, topics in assignments.items()}


def _rank(plan: GroupPlan, member_id: str) -> tuple[bool, str]:
    instance_id = plan.members[member_id].instance_id
    return (False, instance_id) if instance_id is not None else (True, member_id)
