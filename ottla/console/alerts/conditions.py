"""The findings of a rule in a sample: the subjects that break it, with values. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ottla.client.admin.topics import Partition
from ottla.console.alerts.rules import Rule, RuleKind
from ottla.console.model.overview import Sample

_NAMED = 10


class Finding(NamedTuple):
    """A subject that breaks a rule; `detail` is a sentence. The subject of partitions is empty: one
    incident has them all.
    """

    subject: str
    value: float
    detail: str


def findings_of(
    rule: Rule, sample: Sample, known_brokers: frozenset[int], error_rates: Mapping[int, float]
) -> list[Finding]:
    """Return what breaks a rule.

    `known_brokers` are the ids that were seen before; `error_rates` are error responses per second
    by broker, without those that are unknown.
    """
    return _CHECKS[rule.kind](rule, sample, known_brokers, error_rates)


def is_unknown(
    rule: Rule, subject: str, sample: Sample, absent: frozenset[int], rates: Mapping[int, float]
) -> bool:
    """Return True if the sample does not have the measure of a subject.

    A partition without a leader has no lag, a dead broker has no disk and reports no groups: what
    was found before is neither confirmed nor over.
    """
    match rule.kind:
        case RuleKind.LAG:
            is_listed = subject in sample.group_states or bool(absent)
            return is_listed and subject not in sample.group_lags
        case RuleKind.LAG_SECONDS:
            is_listed = subject in sample.group_states or bool(absent)
            return is_listed and sample.group_lags_s.get(subject) is None
        case RuleKind.DISK_FREE | RuleKind.DISK_USED:
            nodes = {str(node) for node in sample.disk_usable_bytes}
            return subject not in nodes and subject in {str(node) for node in absent}
        case RuleKind.ERROR_RATE:
            return subject not in {str(node) for node in rates}
        case _:
            return False


def brokers_of(sample: Sample) -> frozenset[int]:
    """Return the brokers of a sample, also absent ones that have replicas."""
    replicas = {node for state in sample.partitions.values() for node in state.replicas}
    return frozenset({*sample.brokers, *replicas})


def _lags(
    rule: Rule, sample: Sample, known: frozenset[int], rates: Mapping[int, float]
) -> list[Finding]:
    return [
        Finding(group, lag, f"Group {group} is {lag} records behind (limit {rule.threshold:g}).")
        for group, lag in sorted(sample.group_lags.items())
        if lag > rule.threshold and rule.selects(group)
    ]


def _lags_s(
    rule: Rule, sample: Sample, known: frozenset[int], rates: Mapping[int, float]
) -> list[Finding]:
    return [
        Finding(group, lag, f"Group {group} is {lag:.0f} s behind (limit {rule.threshold:g} s).")
        for group, lag in sorted(sample.group_lags_s.items())
        if lag is not None and lag > rule.threshold and rule.selects(group)
    ]


def _under_replicated(
    rule: Rule, sample: Sample, known: frozenset[int], rates: Mapping[int, float]
) -> list[Finding]:
    return _partitions(
        rule, sample, "Under-replicated", lambda state: len(state.isr) < len(state.replicas)
    )


def _offline(
    rule: Rule, sample: Sample, known: frozenset[int], rates: Mapping[int, float]
) -> list[Finding]:
    return _partitions(rule, sample, "Offline", lambda state: state.leader not in sample.brokers)


def _partitions(
    rule: Rule, sample: Sample, adjective: str, is_bad: Callable[[Partition], bool]
) -> list[Finding]:
    names = [
        f"{topic}-{number}"
        for (topic, number), state in sorted(sample.partitions.items())
        if is_bad(state) and rule.selects(topic)
    ]
    if len(names) <= rule.threshold:
        return []
    return [Finding("", len(names), f"{adjective} partitions ({len(names)}): {_some(names)}.")]


def _disk_free(
    rule: Rule, sample: Sample, known: frozenset[int], rates: Mapping[int, float]
) -> list[Finding]:
    return [
        Finding(str(node), free, f"Broker {node} has {free} bytes free (limit {rule.threshold:g}).")
        for node, free in sorted(sample.disk_usable_bytes.items())
        if free < rule.threshold and rule.selects(str(node))
    ]


def _disk_used(
    rule: Rule, sample: Sample, known: frozenset[int], rates: Mapping[int, float]
) -> list[Finding]:
    shares = {
        node: 100 * (1 - sample.disk_usable_bytes[node] / total)
        for node, total in sorted(sample.disk_total_bytes.items())
        if total > 0 and node in sample.disk_usable_bytes
    }
    return [
        Finding(
            str(node),
            share,
            f"{share:.1f} % of broker {node}'s disks are used (limit {rule.threshold:g} %).",
        )
        for node, share in shares.items()
        if share > rule.threshold and rule.selects(str(node))
    ]


def _absent(
    rule: Rule, sample: Sample, known: frozenset[int], rates: Mapping[int, float]
) -> list[Finding]:
    absent = sorted((known | brokers_of(sample)) - set(sample.brokers))
    return [
        Finding(str(node), 1.0, f"Broker {node} is absent.")
        for node in absent
        if rule.selects(str(node))
    ]


def _errors(
    rule: Rule, sample: Sample, known: frozenset[int], rates: Mapping[int, float]
) -> list[Finding]:
    return [
        Finding(
            str(node),
            rate,
            f"Broker {node} returns {rate:.2f} errors per second (limit {rule.threshold:g}).",
        )
        for node, rate in sorted(rates.items())
        if rate > rule.threshold and rule.selects(str(node))
    ]


def _available(
    rule: Rule, sample: Sample, known: frozenset[int], rates: Mapping[int, float]
) -> list[Finding]:
    # A cluster that has been sampled is available.
    return []


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    rest = len(listed) - _NAMED
    return ", ".join(listed[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


_CHECKS = {
    RuleKind.LAG: _lags,
    RuleKind.LAG_SECONDS: _lags_s,
    RuleKind.UNDER_REPLICATED: _under_replicated,
    RuleKind.OFFLINE: _offline,
    RuleKind.DISK_FREE: _disk_free,
    RuleKind.DISK_USED: _disk_used,
    RuleKind.ABSENT_BROKER: _absent,
    RuleKind.ERROR_RATE: _errors,
    RuleKind.UNAVAILABLE: _available,
}
