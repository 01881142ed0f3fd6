"""The names under which Prometheus gets the beans: one function for each dialect in use.

* `jmx-exporter`: the rules that jmx_exporter and Strimzi ship for Kafka. Most dashboards read it:
  `kafka_server_brokertopicmetrics_messagesin_total`.
* `strimzi-reporter`: Strimzi's metrics reporter: `…_messagesinpersec_total`.
* `confluent`: the rules of Confluent's jmx-monitoring-stacks: `…_messagesinpersec`; labels in lower
  case, and the count of a timer under the name of its quantiles.

Names are in lower case. A name that two of the chosen dialects share is served once, in the first.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial

from ottla.metrics.beans import (
    SHARES,
    BeanKind,
    Computed,
    Distribution,
    Idle,
    LabelledValue,
    Measurement,
    Properties,
)
from ottla.metrics.exposition import Family, Kind, Sample, labels

JMX_EXPORTER = "jmx-exporter"
STRIMZI_REPORTER = "strimzi-reporter"
CONFLUENT = "confluent"

_PER_SECOND = re.compile(r"PerSec\w*$")
_PERCENT = re.compile(r"Percent\w*$")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")
_TOTAL = "-total"
# Confluent's rules have names of their own for these.
_CONFLUENT_TYPES = {"socket-server-metrics": "socketservermetrics"}
_CONFLUENT_LABELS = {"networkProcessor": "network_processor"}

LabelsOf = Callable[..., str]


class _Samples:
    """Samples that are made while they are written, any number of times."""

    def __init__(self, make: Callable[[], Iterator[Sample]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Sample]:
        return self._make()


def families(measurements: Iterable[Measurement], dialects: Sequence[str]) -> Iterator[Family]:
    """Yield the families of the measurements in the dialects; a name comes once."""
    served: set[str] = set()
    for measurement in measurements:
        for dialect in dialects:
            rendering = _RENDERINGS.get(dialect)
            for family in () if rendering is None else rendering(measurement):
                if family.name not in served:
                    served.add(family.name)
                    yield family


@cache
def _name(*parts: str) -> str:
    return _NOT_IN_NAMES.sub("_", "_".join(parts)).lower()


# -- jmx_exporter ---------------------------------------------------------------------------------


def _jmx_exporter(measurement: Measurement) -> Iterator[Family]:
    bean, rows = measurement
    name, kind = bean.name, Kind.GAUGE
    if bean.kind is BeanKind.TIMER:
        yield _summary(measurement)
        return
    if bean.kind is BeanKind.METER:
        name, kind = _PER_SECOND.sub("_total", name), Kind.COUNTER
    elif bean.kind is BeanKind.TOTAL:
        kind = Kind.COUNTER
    elif not bean.is_attribute:
        name = _PERCENT.sub("_percent", name)
    samples = _shares if bean.kind is BeanKind.IDLE else _numbers
    name = _name(bean.domain, bean.type, name)
    yield Family(name, kind, bean.help, _Samples(partial(samples, rows)))


def _numbers(rows: Iterable[LabelledValue]) -> Iterator[Sample]:
    if isinstance(rows, Computed):
        yield from rows.samples()
        return
    for properties, value in rows:
        if not isinstance(value, tuple | str):
            yield properties.text, value


def _shares(rows: Iterable[LabelledValue]) -> Iterator[Sample]:
    for properties, value in rows:
        if isinstance(value, Idle):
            yield properties.text, value.share


def _summary(measurement: Measurement) -> Family:
    bean, rows = measurement
    return Family(
        _name(bean.domain, bean.type, bean.name),
        Kind.SUMMARY,
        bean.help,
        _Samples(partial(_quantiles, rows, _labels)),
        {
            "_count": _Samples(
                lambda: (
                    (at.text, distribution.values_count)
                    for at, distribution in _distributions(rows)
                )
            ),
            "_sum": _Samples(
                lambda: ((at.text, distribution.sum) for at, distribution in _distributions(rows))
            ),
        },
    )


def _distributions(rows: Iterable[LabelledValue]) -> Iterator[tuple[Properties, Distribution]]:
    for properties, value in rows:
        if isinstance(value, Distribution):
            yield properties, value


def _quantiles(rows: Iterable[LabelledValue], labels_of: LabelsOf) -> Iterator[Sample]:
    for properties, distribution in _distributions(rows):
        for share, value in zip(SHARES, distribution.quantiles, strict=True):
            yield labels_of(properties, quantile=share), value


def _labels(properties: Properties, **more: object) -> str:
    return labels(**dict(properties.pairs), **more)


# -- Strimzi's metrics reporter -------------------------------------------------------------------


def _strimzi_reporter(measurement: Measurement) -> Iterator[Family]:
    bean, rows = measurement
    if bean.kind is BeanKind.TIMER:
        yield _summary(measurement)
        return
    name = _name(bean.domain, bean.type, bean.name.removesuffix(_TOTAL))
    kind = Kind.GAUGE
    if bean.kind in (BeanKind.METER, BeanKind.IDLE):
        name, kind = f"{name}_total", Kind.COUNTER
    samples = _idle_times if bean.kind is BeanKind.IDLE else _numbers
    yield Family(name, kind, bean.help, _Samples(partial(samples, rows)))
    yield Family(f"{name}_info", Kind.GAUGE, bean.help, _Samples(partial(_texts, rows)))


def _idle_times(rows: Iterable[LabelledValue]) -> Iterator[Sample]:
    for properties, value in rows:
        if isinstance(value, Idle):
            yield properties.text, value.nanoseconds


def _texts(rows: Iterable[LabelledValue]) -> Iterator[Sample]:
    for properties, value in rows:
        if isinstance(value, str):
            yield _labels(properties, value=value), 1


# -- Confluent's jmx-monitoring-stacks ------------------------------------------------------------


def _confluent(measurement: Measurement) -> Iterator[Family]:
    bean, rows = measurement
    name = _name(bean.domain, _CONFLUENT_TYPES.get(bean.type, bean.type), bean.name)
    kind = Kind.UNTYPED if bean.kind in (BeanKind.METER, BeanKind.TIMER) else Kind.GAUGE
    if bean.kind is BeanKind.IDLE:
        name += "_oneminuterate"
    yield Family(name, kind, bean.help, _Samples(partial(_confluent_samples, rows)))


def _confluent_samples(rows: Iterable[LabelledValue]) -> Iterator[Sample]:
    for properties, value in rows:
        if isinstance(value, Distribution):
            yield _confluent_labels(properties), value.values_count
            yield from _quantiles([(properties, value)], _confluent_labels)
        elif isinstance(value, Idle):
            yield _confluent_labels(properties), value.share
        elif not isinstance(value, str):
            yield _confluent_labels(properties), value


def _confluent_labels(properties: Properties, **more: object) -> str:
    pairs = {_CONFLUENT_LABELS.get(key, key.lower()): value for key, value in properties.pairs}
    return labels(**pairs, **more)


_RENDERINGS: Mapping[str, Callable[[Measurement], Iterator[Family]]] = {
    JMX_EXPORTER: _jmx_exporter,
    STRIMZI_REPORTER: _strimzi_reporter,
    CONFLUENT: _confluent,
}
