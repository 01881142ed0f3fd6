"""How long other brokers are preferred to one that did not respond."""

from ottla.client.connection import SilentBrokers


def test_a_silent_broker_is_avoided_longer_each_time_until_it_responds() -> None:
    """3 seconds, then twice as long, up to 24 seconds; a response ends it."""
    now = [0.0]
    silence = SilentBrokers(lambda: now[0])
    pauses = []
    for _ in range(5):
        silence.on_timeout(1)
        began = now[0]
        while silence.is_silent(1):
            now[0] += 1
        pauses.append(now[0] - began)
    assert pauses == [3, 6, 12, 24, 24]
    silence.on_timeout(1)
    silence.on_response(1)
    assert not silence.is_silent(1)
    assert silence.timeouts == 6


def test_a_broker_that_refuses_connections_is_avoided_for_a_short_time() -> None:
    """The next request finds out at once if it is still down."""
    now = [0.0]
    silence = SilentBrokers(lambda: now[0])
    for _ in range(3):
        silence.on_refusal(1)
        assert silence.is_silent(1)
        now[0] += 3
        assert not silence.is_silent(1)
    assert silence.timeouts == 0
