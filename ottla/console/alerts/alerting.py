"""Alerts of a running console: samples go through the machine, notifications are sent in a thread."""

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.console.accounts.database import Database
from ottla.console.alerts.addresses import Forbidden, Network
from ottla.console.alerts.channels import Channel, Notification
from ottla.console.alerts.evaluation import (
    Closed,
    Configured,
    Effect,
    Evaluation,
    Event,
    Failed,
    Incident,
    Notify,
    Opened,
    Reason,
    Resumed,
    Sampled,
    Silence,
    Updated,
)
from ottla.console.alerts.rules import Rule, RuleKind
from ottla.console.alerts.sending import NotSent, send
from ottla.console.alerts.store import SENT, AlertStore, Delivery
from ottla.console.catalogue import ClusterCatalogue
from ottla.console.model.overview import Sample
from ottla.console.sampler import Listener
from ottla.operations.survey.errors import read_error_counts

_log = logging.getLogger(__name__)

# Pauses before a notification is sent again.
_RETRIES_S = (2.0, 15.0)
# A channel that does not respond must not fill the memory.
_WAITING_MAX = 200


class Alerts(Listener):
    """The alerts of all clusters; any thread may use them. It listens to the sampler."""

    def __init__(
        self,
        database: Database,
        clusters: ClusterCatalogue,
        clock: Clock,
        allowed: Sequence[Network] = (),
        first_rules: Sequence[Rule] = (),
    ) -> None:
        self.store = AlertStore(database, first_rules)
        self._clusters = clusters
        self._clock = clock
        self._allowed = allowed
        self._lock = threading.Lock()
        self._evaluation = Evaluation(self.store.open_incidents())
        self._sender = ThreadPoolExecutor(1, "console-alerts")
        self._waiting = 0
        self._stopped = threading.Event()
        self.configure()

    def configure(self) -> None:
        """Read rules and silences again, after a change."""
        self._step(self._configuration())

    def on_begin(self, cluster: str) -> None:
        """Continue with the open incidents of the file."""
        incidents = self.store.open_incidents()
        self._step(Resumed(cluster, tuple(row for row in incidents if row.key.cluster == cluster)))

    def on_sample(self, sample: Sample) -> None:
        """Evaluate the rules for a sample, also those that another console of the file has stored."""
        self.configure()
        rules = [stored.rule for stored in self.store.rules()]
        needs_errors = any(
            rule.kind is RuleKind.ERROR_RATE and rule.applies_to(sample.cluster) for rule in rules
        )
        counts: Mapping[int, int] = {}
        if needs_errors:
            counts = read_error_counts(self._clusters.get(sample.cluster))
        self._step(Sampled(sample, counts))

    def on_failure(self, cluster: str, at_ms: int, reason: str) -> None:
        """Evaluate the rules for a cluster that does not respond."""
        self.configure()
        self._step(Failed(cluster, reason))

    def test(self, number: int) -> None:
        """Send a test notification to a channel now; NotSent or Forbidden if that fails."""
        channel = self.store.channel(number)
        title = "Test of an alert channel"
        text = f"Ottla's console can reach the channel {channel.name!r}."
        self._send(channel, Notification(title, text, {"reason": "test"}))

    def now_ms(self) -> int:
        """Return the time in ms."""
        return self._clock.time_ms()

    def wait(self) -> None:
        """Wait until the notifications so far have been sent, for tests."""
        self._sender.submit(lambda: None).result()

    def close(self) -> None:
        """Stop; notifications that wait are dropped."""
        self._stopped.set()
        self._sender.shutdown(wait=True, cancel_futures=True)

    def _configuration(self) -> Configured:
        silences = self.store.silences(self._clock.time_ms())
        return Configured(
            {stored.id: stored.rule for stored in self.store.rules()},
            tuple(Silence(row.rule, row.cluster, row.until_ms) for row in silences),
        )

    def _step(self, event: Event) -> None:
        with self._lock:
            now_ms = self._clock.time_ms()
            for effect in self._evaluation.step(event, now_ms):
                self._apply(effect, now_ms)

    def _apply(self, effect: Effect, now_ms: int) -> None:
        match effect:
            case Opened(rule, incident):
                self.store.open_incident(incident, rule)
            case Updated(incident):
                self.store.update_incident(incident)
            case Closed(incident):
                self.store.close_incident(incident, now_ms)
            case Notify(rule, incident, reason):
                notification = notification_of(rule, incident, reason)
                for number in rule.channels:
                    self._submit(number, notification, incident)

    def _submit(self, number: int, notification: Notification, incident: Incident) -> None:
        if self._waiting >= _WAITING_MAX or self._stopped.is_set():
            _log.warning("the notification %r is dropped: too many wait", notification.title)
            return
        self._waiting += 1
        self._sender.submit(self._deliver, number, notification, incident)

    def _deliver(self, number: int, notification: Notification, incident: Incident) -> None:
        try:
            self._try(self.store.channel(number), notification, incident)
        except OttlaError as error:
            _log.warning("a notification was not sent: %s", error)
        finally:
            with self._lock:
                self._waiting -= 1

    def _try(self, channel: Channel, notification: Notification, incident: Incident) -> None:
        for pause_s in _RETRIES_S:
            try:
                self._send(channel, notification, incident)
                return
            except NotSent:
                if self._stopped.wait(pause_s):
                    return
        self._send(channel, notification, incident)

    def _send(
        self, channel: Channel, notification: Notification, incident: Incident | None = None
    ) -> None:
        now_ms, result = self._clock.time_ms(), SENT
        try:
            send(channel, notification, now_ms, self._allowed)
        except (NotSent, Forbidden) as error:
            result = str(error)
            raise
        finally:
            delivery = Delivery(now_ms, channel.name, notification.title, result)
            self.store.add_delivery(delivery, incident)


def notification_of(rule: Rule, incident: Incident, reason: Reason) -> Notification:
    """Return the text of a notification. Pure."""
    mark = "RESOLVED" if reason is Reason.RESOLVED else rule.severity.value.upper()
    title = f"[{mark}] {incident.key.cluster}: {rule.name}"
    text = incident.detail
    if reason is Reason.RESOLVED:
        text = f"No longer: {incident.detail}"
    elif reason is Reason.STILL_FIRING:
        text = f"Still: {incident.detail}"
    labels = {
        "reason": reason.value,
        "cluster": incident.key.cluster,
        "rule": rule.name,
        "kind": rule.kind.value,
        "severity": rule.severity.value,
        "subject": incident.key.subject,
        "value": f"{incident.value:g}",
        "since_ms": str(incident.since_ms),
    }
    return Notification(title, text, labels)
