"""The evaluation of rules: a machine that turns samples into incidents and notifications. Pure.

A finding becomes an incident after the rule's `for_s`; there is one incident for each rule, cluster
and subject, however often it is found. A notification is sent when it opens, is repeated while it
lasts, and when it closes; a silence holds it back. A cluster that does not respond neither opens
nor closes incidents of the other rules.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from ottla.console.alerts.conditions import Finding, brokers_of, findings_of, is_unknown
from ottla.console.alerts.rules import Rule, RuleKind
from ottla.console.model.overview import Sample


class Key(NamedTuple):
    """The subject of an incident; there is at most one open incident of a key."""

    rule: int
    cluster: str
    subject: str


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident that is open, or was.

    `notified_ms` is the last notification that was handed to channels; None if a silence held it
    back, or if the rule has no channel.
    """

    key: Key
    since_ms: int
    value: float
    detail: str
    notified_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """No notifications until a time; `rule` None and `cluster` empty are all of them."""

    rule: int | None
    cluster: str
    until_ms: int

    def covers(self, key: Key, now_ms: int) -> bool:
        """Return True if an incident is silenced."""
        is_rule = self.rule in (None, key.rule)
        return is_rule and self.cluster in ("", key.cluster) and now_ms < self.until_ms


class Reason(Enum):
    """Why a notification is sent."""

    FIRING = "firing"
    STILL_FIRING = "still firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Sampled:
    """Event: a cluster was sampled; `error_counts` are error responses by broker, ever."""

    sample: Sample
    error_counts: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """Event: a cluster could not be sampled."""

    cluster: str
    reason: str


@dataclass(frozen=True, slots=True)
class Configured:
    """Event: these are the rules by number, and the silences, from now on."""

    rules: Mapping[int, Rule]
    silences: tuple[Silence, ...]


@dataclass(frozen=True, slots=True)
class Resumed:
    """Event: these incidents of a cluster are open, after another console has evaluated it."""

    cluster: str
    incidents: tuple[Incident, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """Effect: store a new incident."""

    rule: Rule
    incident: Incident


@dataclass(frozen=True, slots=True)
class Updated:
    """Effect: store the value and the time of the notification of an open incident."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class Closed:
    """Effect: store that an incident has ended."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class Notify:
    """Effect: send a notification to the channels of a rule."""

    rule: Rule
    incident: Incident
    reason: Reason


Event = Sampled | Failed | Configured | Resumed
Effect = Opened | Updated | Closed | Notify


class Evaluation:
    """The machine; `open_incidents` come from the last run, and continue."""

    def __init__(self, open_incidents: Iterable[Incident] = ()) -> None:
        self._rules: Mapping[int, Rule] = {}
        self._silences: tuple[Silence, ...] = ()
        self._open = {incident.key: incident for incident in open_incidents}
        self._pending: dict[Key, int] = {}
        self._brokers: dict[str, frozenset[int]] = {}
        self._errors: dict[str, tuple[int, Mapping[int, int]]] = {}

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Take an event and return its effects, in order."""
        if isinstance(event, Configured):
            return self._configure(event)
        if isinstance(event, Resumed):
            return self._resume(event)
        if isinstance(event, Failed):
            by_rule = {
                number: [Finding("", 1.0, f"Cluster {event.cluster} does not respond.")]
                for number, rule in self._applying(event.cluster).items()
                if rule.kind is RuleKind.UNAVAILABLE
            }
            return self._compare(event.cluster, by_rule, set(), now_ms)
        return self._sampled(event, now_ms)

    def _configure(self, event: Configured) -> list[Effect]:
        former, self._rules = self._rules, event.rules
        self._silences = event.silences
        gone = [key for key in self._open if not self._is_ruled(key, former)]
        self._pending = {
            key: at for key, at in self._pending.items() if self._is_ruled(key, former)
        }
        # Incidents of rules that were deleted, disabled or are about something else now end without
        # a notification.
        return [Closed(self._open.pop(key)) for key in gone]

    def _resume(self, event: Resumed) -> list[Effect]:
        others = {key: row for key, row in self._open.items() if key.cluster != event.cluster}
        self._open = others | {incident.key: incident for incident in event.incidents}
        return []

    def _is_ruled(self, key: Key, former: Mapping[int, Rule]) -> bool:
        rule = self._rules.get(key.rule)
        if rule is None or not rule.applies_to(key.cluster):
            return False
        is_same = key.rule not in former or former[key.rule].kind is rule.kind
        return is_same and (not key.subject or rule.selects(key.subject))

    def _applying(self, cluster: str) -> dict[int, Rule]:
        return {number: rule for number, rule in self._rules.items() if rule.applies_to(cluster)}

    def _sampled(self, event: Sampled, now_ms: int) -> list[Effect]:
        sample = event.sample
        rates = self._error_rates(sample, event.error_counts)
        known = self._brokers.get(sample.cluster, frozenset())
        rules = self._applying(sample.cluster)
        by_rule = {n: findings_of(rule, sample, known, rates) for n, rule in rules.items()}
        self._brokers[sample.cluster] = known | brokers_of(sample)
        absent = self._brokers[sample.cluster] - set(sample.brokers)
        unknown = {
            key
            for key in self._open
            if key.cluster == sample.cluster
            and key.rule in rules
            and is_unknown(rules[key.rule], key.subject, sample, absent, rates)
        }
        return self._compare(sample.cluster, by_rule, unknown, now_ms)

    def _error_rates(self, sample: Sample, counts: Mapping[int, int]) -> dict[int, float]:
        before_ms, before = self._errors.get(sample.cluster, (0, {}))
        self._errors[sample.cluster] = sample.at_ms, counts
        seconds = (sample.at_ms - before_ms) / 1000
        return {
            node: (count - before[node]) / seconds
            for node, count in counts.items()
            # A broker that has restarted counts from 0.
            if seconds > 0 and node in before and count >= before[node]
        }

    def _compare(
        self,
        cluster: str,
        by_rule: Mapping[int, list[Finding]],
        unknown: set[Key],
        now_ms: int,
    ) -> list[Effect]:
        """Open, update and close the incidents of the rules in `by_rule`; those in `unknown` stay."""
        effects: list[Effect] = []
        present: set[Key] = set()
        for number, findings in by_rule.items():
            for finding in findings:
                key = Key(number, cluster, finding.subject)
                present.add(key)
                effects += self._present(key, finding, now_ms)
        for key in [key for key in self._pending if key.cluster == cluster and key.rule in by_rule]:
            if key not in present:
                del self._pending[key]
        for key in [key for key in self._open if key.cluster == cluster and key.rule in by_rule]:
            if key not in present and key not in unknown:
                effects += self._absent(key, now_ms)
        return effects

    def _present(self, key: Key, finding: Finding, now_ms: int) -> list[Effect]:
        rule = self._rules[key.rule]
        incident = self._open.get(key)
        effects: list[Effect] = []
        if incident is None:
            since_ms = self._pending.setdefault(key, now_ms)
            if now_ms - since_ms < rule.for_s * 1000:
                return []
            del self._pending[key]
            incident = Incident(key, since_ms, finding.value, finding.detail)
            effects.append(Opened(rule, incident))
            self._open[key] = incident
        incident = replace(incident, value=finding.value, detail=finding.detail)
        if (reason := self._reason(rule, incident, now_ms)) is not None:
            incident = replace(incident, notified_ms=now_ms)
            effects.append(Notify(rule, incident, reason))
        if incident != self._open.get(key):
            effects.append(Updated(incident))
        self._open[key] = incident
        return effects

    def _reason(self, rule: Rule, incident: Incident, now_ms: int) -> Reason | None:
        if not rule.channels or self._is_silenced(incident.key, now_ms):
            return None
        if incident.notified_ms is None:
            return Reason.FIRING
        if rule.repeat_s and now_ms - incident.notified_ms >= rule.repeat_s * 1000:
            return Reason.STILL_FIRING
        return None

    def _absent(self, key: Key, now_ms: int) -> list[Effect]:
        incident = self._open.pop(key)
        effects: list[Effect] = [Closed(incident)]
        rule = self._rules[key.rule]
        is_known = incident.notified_ms is not None and bool(rule.channels)
        if is_known and not self._is_silenced(key, now_ms):
            effects.append(Notify(rule, incident, Reason.RESOLVED))
        return effects

    def _is_silenced(self, key: Key, now_ms: int) -> bool:
        return any(silence.covers(key, now_ms) for silence in self._silences)
