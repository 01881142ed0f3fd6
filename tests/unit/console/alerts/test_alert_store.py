"""The tables of alerts: the rules of a new file, and when an incident counts as notified."""

from dataclasses import replace

from ottla.console.accounts.database import Database
from ottla.console.alerts.evaluation import Incident, Key
from ottla.console.alerts.rules import FIRST_RULES, Rule, RuleKind
from ottla.console.alerts.store import SENT, AlertStore, Delivery

FAULT = Incident(Key(1, "live", "2"), 5, 1.0, "Broker 2 is absent.", notified_ms=7)


def test_a_new_file_has_the_rules_about_faults_of_any_cluster() -> None:
    """Each is valid, and needs no channel; lag is not among them."""
    store = AlertStore(Database(":memory:"), FIRST_RULES)
    rules = [stored.rule for stored in store.rules()]
    assert sorted(rule.kind.value for rule in rules) == [
        "absent-broker", "disk-used", "offline", "unavailable", "under-replicated",
    ]  # fmt: skip
    for rule in rules:
        rule.check()
        assert rule.channels == ()


def test_deleted_first_rules_do_not_come_back() -> None:
    """Nor does a file get them that had other rules before."""
    database = Database(":memory:")
    store = AlertStore(database, FIRST_RULES)
    for stored in store.rules():
        store.delete_rule(stored.id)
    AlertStore(database, FIRST_RULES)
    assert store.rules() == []
    database = Database(":memory:")
    other = AlertStore(database)
    other.delete_rule(other.add_rule(Rule("mine", RuleKind.LAG)))
    assert AlertStore(database, FIRST_RULES).rules() == []


def test_an_incident_is_notified_when_a_channel_has_accepted_it() -> None:
    """Also if it has ended until then; another incident of the same subject is not marked."""
    store = AlertStore(Database(":memory:"))
    store.open_incident(replace(FAULT, notified_ms=None), FIRST_RULES[1])
    store.update_incident(FAULT)
    assert store.incidents()[0].notified_ms is None
    store.close_incident(FAULT, 9)
    store.add_delivery(Delivery(8, "hook", "title", "refused"), FAULT)
    assert store.incidents()[0].notified_ms is None
    store.add_delivery(Delivery(8, "hook", "title", SENT), FAULT)
    assert [row.notified_ms for row in store.incidents()] == [8]


def test_another_console_does_not_repeat_an_attempt() -> None:
    """It knows when channels were tried, also if none has accepted the notification."""
    store = AlertStore(Database(":memory:"))
    store.open_incident(replace(FAULT, notified_ms=None), FIRST_RULES[1])
    store.update_incident(FAULT)
    assert store.open_incidents() == [FAULT]
    assert store.incidents()[0].notified_ms is None


def test_the_file_of_an_earlier_version_gets_the_time_of_attempts() -> None:
    """Its notified incidents are not notified again."""
    database = Database(":memory:")
    store = AlertStore(database)
    store.open_incident(FAULT, FIRST_RULES[1])
    database.change("UPDATE alert_incidents SET notified_ms = 7")
    database.change("ALTER TABLE alert_incidents DROP COLUMN tried_ms")
    assert AlertStore(database).open_incidents() == [FAULT]
