"""The options that bound strangers: connections before their client is known, and failed logins."""

from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module
from ottla.base.options import OptionType, Scope, Snapshot
from ottla.cluster.options.option_rows import INT_MAX, Rows
from ottla.net.admission.newcomers import Bounds

if TYPE_CHECKING:
    from ottla.net.admission import attempts, handshakes
else:
    # Only brokers with TLS or SASL need them.
    attempts = deferred_module("ottla.net.admission.attempts")
    handshakes = deferred_module("ottla.net.admission.handshakes")

_broker = Rows(Scope.BROKER, dynamic=False).row
INT = OptionType.INT
_OWN = "Ottla's own: "

ROWS = (
    _broker(
        "authentication.timeout.ms",
        INT,
        10_000,
        f"{_OWN}milliseconds from the connection to the end of authentication, or to the first "
        "request on a listener without users; then the connection is closed. Delays after failed "
        "logins do not count.",
        minimum=1,
        dynamic=True,
    ),
    _broker(
        "max.unauthenticated.connections",
        INT,
        1000,
        f"{_OWN}maximum number of connections whose clients are not known yet, to all listeners "
        "together, and of unfinished TLS handshakes; never more than half of max.connections. A "
        "newcomer takes the place of one from the address that has the most.",
        minimum=1,
        dynamic=True,
    ),
    _broker(
        "max.unauthenticated.connections.per.ip",
        INT,
        500,
        f"{_OWN}the same for the connections from one address.",
        minimum=1,
        dynamic=True,
    ),
    _broker(
        "ssl.handshakes.at.once",
        INT,
        2,
        f"{_OWN}number of TLS handshakes that a listener begins in one turn of the event loop, "
        "between which other requests are served.",
        minimum=1,
    ),
    _broker(
        "ssl.handshakes.max.unfinished",
        INT,
        64,
        f"{_OWN}maximum number of TLS handshakes of a listener that have begun and are not "
        "complete. If others wait, one of the address that has the most is given up, or one that "
        "takes longer than two seconds.",
        minimum=1,
    ),
    _broker(
        "connection.failed.authentication.delay.max.ms",
        INT,
        10_000,
        f"{_OWN}the longest delay before another password of a user is checked, in milliseconds. "
        "Attempts that would have to wait longer are refused without a check.",
        minimum=0,
        maximum=INT_MAX,
    ),
    _broker(
        "connection.failed.authentication.free.count",
        INT,
        5,
        f"{_OWN}number of failed logins of a user from one address after which its next passwords "
        "are checked with a delay, which doubles with each failure. Ten times as many, of several "
        "users or from several addresses, delay an address or a user.",
        minimum=1,
    ),
)


def bounds_of(options: Snapshot) -> Bounds:
    """Return the bounds of strangers: they never use more than half of max.connections."""
    half = max(1, options.integer("max.connections") // 2)
    return Bounds(
        min(options.integer("max.unauthenticated.connections"), half),
        options.integer("max.unauthenticated.connections.per.ip"),
    )


def pace_of(options: Snapshot) -> "handshakes.Pace":
    """Return the pace of TLS handshakes."""
    return handshakes.Pace(
        options.integer("ssl.handshakes.at.once"),
        options.integer("ssl.handshakes.max.unfinished"),
    )


def attempts_of(options: Snapshot) -> "attempts.AttemptLimits":
    """Return the delays after failed logins."""
    return attempts.AttemptLimits(
        options.integer("connection.failed.authentication.delay.ms") / 1000,
        options.integer("connection.failed.authentication.delay.max.ms") / 1000,
        options.integer("connection.failed.authentication.free.count"),
    )
