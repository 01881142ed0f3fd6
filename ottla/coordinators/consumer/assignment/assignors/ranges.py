"""The assignor `range`: of each topic a run of partitions for each member.

Topics with as many partitions fall to members alike, so that what has one key meets in one member.
Static members come first, by their instance id, so that their runs stay when others come and go.
Follows Kafka's RangeAssignor.
"""

from ottla.coordinators.consumer.assignment.assignors.plan import Assignments, GroupPlan, frozen

NAME = "range"


def assign(plan: GroupPlan) -> Assignments:
    """Cut every topic into one run for each of its readers; the first ones get what is left over."""
    order = sorted(plan.members, key=lambda member_id: _rank(plan, member_id))
    found: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in order}
    for topic, count in plan.partition_counts.items():
        readers = [name for name in order if topic in plan.members[name].topics]
        if not readers:
            continue
        shortest, longer = divmod(count, len(readers))
        start = 0
        for position, member_id in enumerate(readers):
            end = start + shortest + (position < longer)
            found[member_id][topic] = set(range(start, end))
            start = end
    return {member_id: frozen(topics) for member_id, topics in found.items()}


def _rank(plan: GroupPlan, member_id: str) -> tuple[bool, str]:
    instance_id = plan.members[member_id].instance_id
    return (False, instance_id) if instance_id is not None else (True, member_id)
