"""The machine of alerts on virtual time: what opens, notifies, repeats, is silenced and closes."""

from dataclasses import replace

import pytest

from ottla.client.admin.topics import Partition
from ottla.console.alerts.evaluation import (
    Closed,
    Configured,
    Effect,
    Evaluation,
    Event,
    Failed,
    Incident,
    Key,
    Notify,
    Opened,
    Reason,
    Resumed,
    Sampled,
    Silence,
)
from ottla.console.alerts.rules import Rule, RuleKind
from ottla.console.model.overview import Sample

HEALTHY = Sample(
    cluster="live",
    at_ms=0,
    controller_id=1,
    brokers=(1, 2),
    partitions={
        ("orders", 0): Partition(0, 1, 0, (1, 2), (1, 2), ()),
        ("orders", 1): Partition(1, 2, 0, (2, 1), (1, 2), ()),
        ("other", 0): Partition(0, 1, 0, (1,), (1,), ()),
    },
    end_offsets={},
    sizes_bytes={},
    disk_total_bytes={1: 1000, 2: 1000},
    disk_usable_bytes={1: 500, 2: 600},
    group_states={},
    group_lags={"billing": 10, "audit": 0},
    group_lags_s={"billing": 3.0, "audit": None},
)
DEGRADED = replace(
    HEALTHY,
    brokers=(1,),
    partitions={
        ("orders", 0): Partition(0, 1, 0, (1, 2), (1,), ()),
        ("orders", 1): Partition(1, -1, 0, (2, 1), (), ()),
        ("other", 0): Partition(0, 1, 0, (1,), (1,), ()),
    },
    disk_usable_bytes={1: 40},
    group_lags={"billing": 5000, "audit": 70},
    group_lags_s={"billing": 900.0, "audit": None},
)


# Of channels, only their number is known.
CHANNELS = (3,)


class Machine:
    """An evaluation with one rule, number 7, and a channel, at a time of the test."""

    def __init__(self, rule: Rule, *silences: Silence) -> None:
        self.evaluation = Evaluation()
        self.seconds = 0
        self.step(Configured({7: replace(rule, channels=CHANNELS)}, silences))

    def step(self, event: Event, after_s: int = 0) -> list[Effect]:
        """Let seconds pass, and take an event."""
        self.seconds += after_s
        return self.evaluation.step(event, self.seconds * 1000)

    def sample(self, sample: Sample, after_s: int = 10) -> list[Effect]:
        """Take a sample after some seconds."""
        return self.step(Sampled(replace(sample, at_ms=(self.seconds + after_s) * 1000)), after_s)


def reasons(effects: list[Effect]) -> list[Reason]:
    """Return the reasons of the notifications among effects."""
    return [effect.reason for effect in effects if isinstance(effect, Notify)]


@pytest.mark.parametrize(
    ("kind", "threshold", "subjects", "detail"),
    [
        (RuleKind.LAG, 60, ["audit", "billing"], "Group audit is 70 records behind"),
        (RuleKind.LAG_SECONDS, 60, ["billing"], "Group billing is 900 s behind"),
        (RuleKind.UNDER_REPLICATED, 1, [""], "Under-replicated partitions (2): orders-0, orde"),
        (RuleKind.OFFLINE, 0, [""], "Offline partitions (1): orders-1."),
        (RuleKind.DISK_FREE, 50, ["1"], "Broker 1 has 40 bytes free"),
        (RuleKind.DISK_USED, 90, ["1"], "96.0 % of broker 1's disks are used"),
        (RuleKind.ABSENT_BROKER, 0, ["2"], "Broker 2 is absent."),
    ],
)
def test_each_rule_fires_for_its_fault_and_is_silent_otherwise(
    kind: RuleKind, threshold: float, subjects: list[str], detail: str
) -> None:
    """A healthy cluster opens nothing; the fault opens one incident of each subject; its end closes
    them.
    """
    machine = Machine(Rule("r", kind, threshold, for_s=0))
    assert machine.sample(HEALTHY) == []
    opened = [effect for effect in machine.sample(DEGRADED) if isinstance(effect, Opened)]
    assert [effect.incident.key.subject for effect in opened] == subjects
    assert opened[0].incident.detail.startswith(detail)
    assert reasons(machine.sample(DEGRADED)) == []
    assert reasons(machine.sample(HEALTHY)) == [Reason.RESOLVED] * len(subjects)
    assert machine.sample(HEALTHY) == []


def test_error_rates_are_differences_of_counters() -> None:
    """5 errors in 10 s are 0.5/s; a restarted broker, whose counter is smaller, has no rate once."""
    machine = Machine(Rule("r", RuleKind.ERROR_RATE, 0.4, for_s=0))

    def fires(count: int) -> list[Reason]:
        sample = replace(HEALTHY, at_ms=(machine.seconds + 10) * 1000)
        return reasons(machine.step(Sampled(sample, {1: count}), 10))

    assert [fires(count) for count in (1000, 1003)] == [[], []]
    assert fires(1008) == [Reason.FIRING]
    assert [fires(count) for count in (7, 7)] == [[], [Reason.RESOLVED]]


def test_an_unknown_measure_neither_fires_nor_resolves() -> None:
    """The lag of a group whose partitions have no leader is unknown, not 0; a deleted group ends."""
    machine = Machine(Rule("r", RuleKind.LAG_SECONDS, 60, for_s=0))
    assert reasons(machine.sample(DEGRADED)) == [Reason.FIRING]
    unknown = replace(HEALTHY, group_states={"billing": "Empty"}, group_lags_s={"billing": None})
    assert machine.sample(unknown) == []
    deleted = replace(HEALTHY, group_states={}, group_lags_s={})
    assert reasons(machine.sample(deleted)) == [Reason.RESOLVED]


def test_an_unreachable_cluster_fires_only_its_own_rule() -> None:
    """Nothing is known of its groups: their incidents neither open nor close."""
    lag = Rule("lag", RuleKind.LAG, 60, for_s=0)
    gone = Rule("gone", RuleKind.UNAVAILABLE, for_s=30, channels=CHANNELS)
    machine = Machine(lag)
    machine.sample(DEGRADED)
    machine.step(Configured({7: lag, 8: gone}, ()))
    failed = Failed("live", "connection refused")
    assert [machine.step(failed, 10) for _ in range(3)] == [[], [], []]
    assert reasons(machine.step(failed, 10)) == [Reason.FIRING]
    back = machine.sample(DEGRADED)
    assert [effect.incident.key.rule for effect in back if isinstance(effect, Closed)] == [8]


def test_a_short_fault_does_not_fire() -> None:
    """A finding that disappears before `for_s` starts from the beginning."""
    machine = Machine(Rule("r", RuleKind.LAG, 60, for_s=30))
    samples = [DEGRADED, DEGRADED, HEALTHY, DEGRADED, DEGRADED, DEGRADED]
    assert [machine.sample(sample) for sample in samples] == [[]] * 6
    assert reasons(machine.sample(DEGRADED)) == [Reason.FIRING] * 2


def test_an_incident_is_notified_once_and_repeated_after_its_time() -> None:
    """No other notification is sent between them, however often the fault is found."""
    machine = Machine(Rule("r", RuleKind.OFFLINE, for_s=0, repeat_s=60))
    results = [reasons(machine.sample(DEGRADED)) for _ in range(13)]
    firing = [number for number, each in enumerate(results) if each]
    assert firing == [0, 6, 12]
    assert results[6] == [Reason.STILL_FIRING]


def test_a_silence_holds_notifications_back_until_its_end() -> None:
    """The incident is recorded; if it lasts longer than the silence, it is notified then."""
    rule = Rule("r", RuleKind.OFFLINE, for_s=0)
    machine = Machine(rule, Silence(7, "live", 25_000))
    effects = machine.sample(DEGRADED)
    assert [type(effect) for effect in effects] == [Opened]
    assert machine.sample(DEGRADED) == []
    assert reasons(machine.sample(DEGRADED)) == [Reason.FIRING]
    other = Machine(rule, Silence(7, "test", 25_000), Silence(8, "", 25_000))
    assert reasons(other.sample(DEGRADED)) == [Reason.FIRING]
    silenced = Machine(rule, Silence(None, "", 99_000))
    silenced.sample(DEGRADED)
    assert reasons(silenced.sample(HEALTHY)) == []


def test_a_rule_without_channels_notifies_when_it_gets_one() -> None:
    """Its incident is recorded as not notified; with a channel it fires at the next sample."""
    rule = Rule("r", RuleKind.OFFLINE, for_s=0)
    machine = Machine(rule)
    machine.step(Configured({7: rule}, ()))
    assert [type(effect) for effect in machine.sample(DEGRADED)] == [Opened]
    machine.step(Configured({7: replace(rule, channels=CHANNELS)}, ()))
    assert reasons(machine.sample(DEGRADED)) == [Reason.FIRING]
    machine.step(Configured({7: rule}, ()))
    assert [type(effect) for effect in machine.sample(HEALTHY)] == [Closed]


def test_rules_select_clusters_and_targets() -> None:
    """A rule of another cluster, a disabled one, and one with another pattern find nothing."""
    rule = Rule("r", RuleKind.LAG, 60, for_s=0)
    for change in (
        replace(rule, cluster="test"),
        replace(rule, is_enabled=False),
        replace(rule, targets="bill"),
    ):
        assert Machine(change).sample(DEGRADED) == []
    effects = Machine(replace(rule, targets="bill.*")).sample(DEGRADED)
    assert [effect.incident.key.subject for effect in effects if isinstance(effect, Opened)] == [
        "billing"
    ]


def test_the_incidents_of_a_deleted_rule_end_without_a_notification() -> None:
    """The user who deleted the rule knows it."""
    machine = Machine(Rule("r", RuleKind.OFFLINE, for_s=0))
    machine.sample(DEGRADED)
    effects = machine.step(Configured({}, ()))
    assert [type(effect) for effect in effects] == [Closed]


def test_open_incidents_continue_after_a_restart() -> None:
    """A restart does not repeat the notification, and the end is notified."""
    incident = Incident(Key(7, "live", ""), 0, 1.0, "Offline partitions (1): orders-1.", 5)
    evaluation = Evaluation([incident])
    rule = Rule("r", RuleKind.OFFLINE, for_s=0, channels=CHANNELS)
    evaluation.step(Configured({7: rule}, ()), 10_000)
    assert evaluation.step(Sampled(DEGRADED), 20_000) == []
    assert reasons(evaluation.step(Sampled(HEALTHY), 30_000)) == [Reason.RESOLVED]


def test_a_broker_that_had_no_replicas_is_remembered() -> None:
    """It was seen before, so that its absence is found."""
    machine = Machine(Rule("r", RuleKind.ABSENT_BROKER, for_s=0, targets="3"))
    machine.sample(replace(HEALTHY, brokers=(1, 2, 3)))
    assert reasons(machine.sample(HEALTHY)) == [Reason.FIRING]


def test_a_changed_rule_keeps_its_incidents_unless_they_are_about_something_else() -> None:
    """A lower limit keeps an incident open; other groups, another cluster or measure end it."""
    rule = Rule("lag", RuleKind.LAG, threshold=100, for_s=0)
    for changed, is_over in (
        (replace(rule, threshold=50), False),
        (replace(rule, targets="bill.*"), False),
        (replace(rule, targets="audit"), True),
        (replace(rule, cluster="other"), True),
        (replace(rule, kind=RuleKind.LAG_SECONDS), True),
    ):
        machine = Machine(rule)
        machine.sample(DEGRADED)
        effects = machine.step(Configured({7: changed}, ()))
        assert [type(effect) for effect in effects] == ([Closed] if is_over else []), changed


def test_incidents_of_another_console_continue() -> None:
    """Its open incidents do not open again, and those that it has closed do not close again."""
    machine = Machine(Rule("r", RuleKind.LAG, 60, for_s=0))
    assert reasons(machine.sample(DEGRADED)) == [Reason.FIRING] * 2
    billing = Incident(Key(7, "live", "billing"), 0, 900.0, "lag", notified_ms=1)
    assert machine.step(Resumed("live", (billing,))) == []
    healed = replace(DEGRADED, group_lags={"billing": 5000, "audit": 0})
    assert reasons(machine.sample(healed)) == []
    assert reasons(machine.sample(HEALTHY)) == [Reason.RESOLVED]
