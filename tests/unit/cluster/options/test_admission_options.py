"""The bounds of strangers, from the options."""

from ottla.cluster.options import admission_options
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.net.admission.attempts import AttemptLimits
from ottla.net.admission.handshakes import Pace
from ottla.net.admission.newcomers import Bounds


def test_defaults_of_the_options_are_those_of_the_bounds() -> None:
    """A test that creates a bound without options has a broker's own."""
    options = BROKER_OPTIONS.parse({})
    assert admission_options.bounds_of(options) == Bounds()
    assert admission_options.pace_of(options) == Pace()
    assert admission_options.attempts_of(options) == AttemptLimits()


def test_each_option_sets_its_bound() -> None:
    """Times are in milliseconds."""
    options = BROKER_OPTIONS.parse(
        {
            "max.unauthenticated.connections": "7",
            "max.unauthenticated.connections.per.ip": "3",
            "ssl.handshakes.at.once": "4",
            "ssl.handshakes.max.unfinished": "9",
            "connection.failed.authentication.delay.ms": "250",
            "connection.failed.authentication.delay.max.ms": "3000",
            "connection.failed.authentication.free.count": "2",
        }
    )
    assert admission_options.bounds_of(options) == Bounds(7, 3)
    assert admission_options.pace_of(options)[:2] == (4, 9)
    assert admission_options.attempts_of(options) == AttemptLimits(0.25, 3.0, 2)


def test_strangers_use_half_of_the_connections_at_most() -> None:
    """The other half is for clients that are known."""
    for most, half in ((300, 150), (1, 1), (0, 1)):
        options = BROKER_OPTIONS.parse({"max.connections": str(most)})
        assert admission_options.bounds_of(options).count_max == half
