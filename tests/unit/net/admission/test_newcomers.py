"""Strangers are bounded in all and for each address; an address displaces its own first."""

from ottla.net.admission.newcomers import Bounds, Newcomers


class Peer:
    """A connection whose client may become known."""

    def __init__(self) -> None:
        self.is_stranger = True


def crowd(room: Newcomers[Peer], count: int, host: str) -> list[Peer]:
    """Let strangers arrive from an address; return those that were closed."""
    closed = []
    for _ in range(count):
        loser = room.arrive(Peer(), host)
        if loser is not None:
            closed.append(loser)
    return closed


def test_stranger_is_admitted_while_there_is_room() -> None:
    """No connection is closed below both bounds."""
    room: Newcomers[Peer] = Newcomers(Bounds(10, 5))
    assert crowd(room, 5, "a") == crowd(room, 5, "b") == []
    assert room.count() == 10
    assert (room.refused_count, room.displaced_count) == (0, 0)


def test_address_with_too_many_strangers_gets_no_more() -> None:
    """The newcomer itself is refused, and others are not affected."""
    room: Newcomers[Peer] = Newcomers(Bounds(100, 5))
    assert len(crowd(room, 8, "a")) == 3
    assert room.arrive(Peer(), "b") is None
    assert room.refused_count == 3


def test_crowd_from_one_address_does_not_lock_others_out() -> None:
    """A newcomer from another address takes the place of the oldest of the crowd."""
    room: Newcomers[Peer] = Newcomers(Bounds(10, 10))
    oldest = Peer()
    room.arrive(oldest, "attacker")
    crowd(room, 9, "attacker")
    honest = Peer()
    assert room.arrive(honest, "honest") is oldest
    crowd(room, 100, "attacker")
    assert room.displaced_count == 1
    assert room.count() == 10
    # Neither the crowd nor another address displaces a lonely stranger.
    assert len(crowd(room, 20, "other")) == 20
    honest.is_stranger = False
    assert room.count() == 9


def test_crowd_does_not_displace_strangers_of_other_addresses() -> None:
    """If each address has one stranger, newcomers are refused: the others finish first."""
    room: Newcomers[Peer] = Newcomers(Bounds(10, 10))
    for number in range(10):
        assert room.arrive(Peer(), f"host-{number}") is None
    newcomer = Peer()
    assert room.arrive(newcomer, "late") is newcomer


def test_known_clients_make_room() -> None:
    """A client that becomes known needs no call: it is removed when its place is needed."""
    room: Newcomers[Peer] = Newcomers(Bounds(10, 5))
    peers = [Peer() for _ in range(5)]
    for peer in peers:
        room.arrive(peer, "a")
        peer.is_stranger = False
    assert crowd(room, 5, "a") == []
    assert room.count() == 5
    assert room.refused_count == 0


def test_lost_connection_makes_room() -> None:
    """A connection that was removed before is ignored."""
    room: Newcomers[Peer] = Newcomers(Bounds(1, 1))
    peer = Peer()
    room.arrive(peer, "a")
    room.leave(peer, "a")
    room.leave(peer, "a")
    assert room.count() == 0
    assert crowd(room, 1, "a") == []


def test_bounds_of_nothing_refuse_every_stranger() -> None:
    """There is no stranger to displace if there is no place."""
    room: Newcomers[Peer] = Newcomers(Bounds(0, 5))
    newcomer = Peer()
    assert room.arrive(newcomer, "a") is newcomer
