"""Leader election of partitions: small functions of assignment, ISR and live replicas.

Each returns the new state, with the next leader epoch, or None if no replica can be elected: then
the caller leaves the partition as it is (preferred) or takes it offline. Pure; called by the
controller. Follows Kafka's PartitionLeaderElectionAlgorithms and Election.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ottla.cluster.image import LeaderAndIsr

Live = Collection[int]


def _first(replicas: Iterable[int], *conditions: Collection[int]) -> int | None:
    for replica in replicas:
        if all(replica in condition for condition in conditions):
            return replica
    return None


def elect_for_offline(
    assignment: Sequence[int], state: LeaderAndIsr, live: Live, *, allow_unclean: bool = False
) -> LeaderAndIsr | None:
    """Elect after a leader has died: the first live replica in sync.

    `allow_unclean` (unclean.leader.election.enable) allows any live replica to lead if none is in
    sync. Records that only the other replicas have are then lost; the ISR is the new leader alone,
    and the partition is marked as recovering.
    """
    leader = _first(assignment, live, state.isr)
    if leader is not None:
        isr = tuple(replica for replica in state.isr if replica in live)
        return state.with_leader(leader, isr)
    leader = _first(assignment, live) if allow_unclean else None
    if leader is None:
        return None
    return replace(state.with_leader(leader, (leader,)), is_recovering=True)


def elect_preferred(
    assignment: Sequence[int], state: LeaderAndIsr, live: Live
) -> LeaderAndIsr | None:
    """Elect the first replica, if it is live and in sync."""
    leader = _first(assignment[:1], live, state.isr)
    return None if leader is None else state.with_leader(leader, state.isr)


def elect_for_shutdown(
    assignment: Sequence[int], state: LeaderAndIsr, live: Live, shutting_down: Collection[int]
) -> LeaderAndIsr | None:
    """Move leadership away from brokers that are about to stop, and remove them from the ISR."""
    staying = [replica for replica in live if replica not in shutting_down]
    leader = _first(assignment, staying, state.isr)
    if leader is None:
        return None
    isr = tuple(replica for replica in state.isr if replica not in shutting_down)
    return state.with_leader(leader, isr)


def initial_state(assignment: Sequence[int], live: Live) -> LeaderAndIsr | None:
    """Return the first state of a new partition: the live replicas are in sync, the first one
    leads.
    """
    isr = tuple(replica for replica in assignment if replica in live)
    return LeaderAndIsr(leader=isr[0], leader_epoch=0, isr=isr) if isr else None
