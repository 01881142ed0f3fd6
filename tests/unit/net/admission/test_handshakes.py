"""The order of TLS handshakes, on virtual time."""

from ottla.net.admission.handshakes import HandshakeOrder, Pace


def order(**changes: float) -> HandshakeOrder[str]:
    """Return an empty order."""
    return HandshakeOrder(Pace()._replace(**changes))  # type: ignore[arg-type]


def say_hello(handshakes: HandshakeOrder[str], count: int, host: str) -> None:
    """Let connections arrive from an address with their hellos."""
    for number in range(count):
        handshakes.arrive(f"{host}-{number}", host, 0.0)
        handshakes.has_hello(f"{host}-{number}")


def test_few_handshakes_begin_in_each_turn() -> None:
    """Five hundred hellos at once are spread over turns, in which other requests are served."""
    handshakes = order(at_once=2, unfinished_max=1000)
    say_hello(handshakes, 500, "a")
    turns = []
    while handshakes.waiting_count:
        turns.append(handshakes.take_turn(0.0).begun)
    assert {len(turn) for turn in turns} == {2}
    assert len(turns) == 250
    assert handshakes.begun_count == 500
    assert handshakes.take_turn(0.0) == ([], [])


def test_addresses_take_turns() -> None:
    """The hello of another address does not wait behind the hellos of a crowd."""
    handshakes = order(at_once=2)
    say_hello(handshakes, 500, "crowd")
    say_hello(handshakes, 1, "honest")
    assert handshakes.take_turn(0.0).begun == ["crowd-0", "honest-0"]


def test_connection_without_a_hello_costs_no_turn() -> None:
    """A connection that says nothing is closed when its time is over."""
    handshakes = order(hello_seconds=10.0)
    for number in range(100):
        handshakes.arrive(f"silent-{number}", "a", float(number) / 100)
    say_hello(handshakes, 1, "b")
    assert handshakes.take_turn(1.0).begun == ["b-0"]
    assert handshakes.overdue(9.9) == []
    assert len(handshakes.overdue(10.5)) == 51
    assert len(handshakes.overdue(11.0)) == 49
    assert handshakes.silent_count == 100
    handshakes.leave("b-0")
    assert handshakes.is_empty


def test_unfinished_handshakes_are_bounded() -> None:
    """The next begins when one is complete or has failed."""
    handshakes = order(at_once=5, unfinished_max=8)
    say_hello(handshakes, 20, "a")
    assert len(handshakes.take_turn(0.0).begun) == 5
    assert len(handshakes.take_turn(0.0).begun) == 3
    assert handshakes.take_turn(0.0) == ([], [])
    handshakes.leave("a-0")
    assert handshakes.take_turn(0.0) == (["a-8"], [])


def test_stuck_handshakes_are_given_up_for_others() -> None:
    """Peers that stop in the middle keep others out for two seconds at most."""
    handshakes = order(at_once=100, unfinished_max=4, patience_seconds=2.0)
    say_hello(handshakes, 4, "a")
    handshakes.take_turn(0.0)
    assert handshakes.overdue(5.0) == []
    for name in ("a-8", "a-9"):
        handshakes.arrive(name, "a", 0.0)
        handshakes.has_hello(name)
    assert handshakes.take_turn(1.0) == ([], [])
    assert handshakes.overdue(1.9) == []
    assert handshakes.overdue(2.1) == ["a-0", "a-1"]
    assert handshakes.take_turn(2.1).begun == ["a-8", "a-9"]
    assert handshakes.overdue(9.0) == []
    assert handshakes.abandoned_count == 2


def test_crowd_of_unfinished_handshakes_makes_room_for_other_addresses() -> None:
    """A handshake with another address begins at once, in place of the oldest of the crowd."""
    handshakes = order(at_once=100, unfinished_max=4)
    say_hello(handshakes, 20, "crowd")
    assert len(handshakes.take_turn(0.0).begun) == 4
    say_hello(handshakes, 3, "honest")
    assert handshakes.take_turn(0.1) == (["honest-0"], ["crowd-0"])
    assert handshakes.take_turn(0.2) == (["honest-1"], ["crowd-1"])
    # Now both have as many.
    assert handshakes.take_turn(0.3) == ([], [])


def test_connection_that_is_lost_leaves_in_every_state() -> None:
    """It may be silent, waiting or unfinished; leaving twice does nothing."""
    handshakes = order(at_once=1)
    handshakes.arrive("silent", "a", 0.0)
    say_hello(handshakes, 2, "b")
    handshakes.take_turn(0.0)
    for key in ("silent", "b-0", "b-1", "b-1"):
        handshakes.leave(key)
    assert handshakes.is_empty
    assert handshakes.waiting_count == 0
    assert handshakes.take_turn(0.0) == ([], [])
