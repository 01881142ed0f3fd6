"""The attributes of beans, with the names and values that they have in JMX.

Not done: `Min`, `Max` and `StdDev` of timers.
"""

from ottla.metrics.beans import SHARES, Bean, BeanKind, Distribution, Idle, Value
from ottla.metrics.object_names import ObjectName
from ottla.metrics.rates import MeterRates

# "50thPercentile", "999thPercentile".
_PERCENTILES = tuple(f"{str(share)[2:].ljust(2, '0')}thPercentile" for share in SHARES)
_NANOSECONDS = 1e9
# The events that Kafka's meters count, by a part of their names; the first match counts.
_EVENT_TYPES = {
    "Bytes": "bytes",
    "Messages": "messages",
    "Evictions": "evictions",
    "IsrShrinks": "shrinks",
    "IsrExpands": "expands",
    "IsrUpdates": "failedUpdates",
    "Elections": "elections",
    "ZooKeeperAuthFailures": "authfailures",
    "ZooKeeperDisconnects": "disconnects",
    "ZooKeeperExpires": "expires",
    "ZooKeeperSyncConnects": "syncconnects",
    "Requests": "requests",
    "Errors": "requests",
}

Attributes = dict[str, object]


def attributes_of(
    bean: Bean, name: ObjectName, value: Value, rates: MeterRates, now: float
) -> Attributes:
    """Return the attributes of a bean with this value; `now` is a time of the monotonic clock (s)."""
    if bean.is_attribute:
        return {bean.name: value}
    if bean.kind is BeanKind.METER and isinstance(value, int | float):
        return _meter(str(name), value, _event_type(bean.name), rates, now)
    return _attributes(str(name), value, rates, now)


def _event_type(name: str) -> str:
    return next((text for part, text in _EVENT_TYPES.items() if part in name), "events")


def _attributes(name: str, value: Value, rates: MeterRates, now: float) -> Attributes:
    if isinstance(value, Idle):
        meter = _meter(name, value.nanoseconds / _NANOSECONDS, "percent", rates, now)
        return meter | {"Count": value.nanoseconds, "OneMinuteRate": value.share}
    if isinstance(value, Distribution):
        mean = value.sum / value.values_count if value.values_count else 0.0
        percentiles = (0.0 if quantile != quantile else quantile for quantile in value.quantiles)
        return {
            "Count": value.values_count,
            "Mean": mean,
            **dict(zip(_PERCENTILES, percentiles, strict=True)),
        }
    return {"Value": value}


def _meter(name: str, count: float, events: str, rates: MeterRates, now: float) -> Attributes:
    rate = rates.of(name, count, now)
    return {
        "Count": count,
        "EventType": events,
        "RateUnit": "SECONDS",
        "MeanRate": rate.mean,
        "OneMinuteRate": rate.one_minute,
        "FiveMinuteRate": rate.five_minutes,
        "FifteenMinuteRate": rate.fifteen_minutes,
    }
