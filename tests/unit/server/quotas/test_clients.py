"""What clients have used: whom a measure belongs to, what a request costs, what is forgotten."""

from collections.abc import Callable

import pytest

from ottla.server.quotas import clients
from ottla.server.quotas.clients import ClientQuotas, LimitedClient, Measured, RequestUsage
from ottla.server.quotas.rates import Window

USERS, CLIENTS, IPS = "users", "clients", "ips"
WINDOW = Window(samples=11, sample_ms=1000)


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def quotas(clock: Clock) -> ClientQuotas:
    """Quotas of a broker, none set."""
    return ClientQuotas(WINDOW, WINDOW, clock)


@pytest.fixture
def limited(quotas: ClientQuotas) -> Callable[..., LimitedClient]:
    """Return the client `c` of ANONYMOUS, limited by these settings."""

    def limit(**settings: str) -> LimitedClient:
        quotas.settings_changed(CLIENTS, "c", settings)
        found = quotas.client("ANONYMOUS", "c")
        assert found is not None
        return found

    return limit


def test_without_a_quota_there_is_no_client(quotas: ClientQuotas) -> None:
    """And a client of another name has none either."""
    assert quotas.client("u", "c") is None
    quotas.settings_changed(CLIENTS, "d", {"producer_byte_rate": "10"})
    assert quotas.client("u", "c") is None
    assert quotas.client("u", "d") is not None


def test_changes_are_told(quotas: ClientQuotas) -> None:
    """With whether any client can be limited; settings that are no quotas change nothing."""
    told: list[bool] = []
    quotas.on_change.append(told.append)
    quotas.settings_changed(USERS, "u", {"SCRAM-SHA-256": "x"})
    quotas.settings_changed("client-metrics", "m", {"interval.ms": "100"})
    assert (told, quotas.generation) == ([], 0)
    quotas.settings_changed(IPS, "1.1.1.1", {"connection_creation_rate": "1"})
    quotas.settings_changed(USERS, "u", {"producer_byte_rate": "10"})
    quotas.settings_changed(USERS, "u", {})
    assert (told, quotas.generation) == ([False, True, False], 3)


def test_the_clients_of_a_user_share_its_quota(quotas: ClientQuotas) -> None:
    """Those of the default client id have each their own."""
    quotas.settings_changed(USERS, "u", {"producer_byte_rate": "10"})
    quotas.settings_changed(CLIENTS, "<default>", {"consumer_byte_rate": "10"})
    one, two = quotas.client("u", "c"), quotas.client("u", "d")
    assert one is not None and two is not None
    assert one.produce is two.produce is not None
    assert one.fetch is not two.fetch


def test_what_was_used_outlives_a_change_of_the_limit(quotas: ClientQuotas, clock: Clock) -> None:
    """The new limit counts at once, for what was used before as well."""
    quotas.settings_changed(CLIENTS, "c", {"producer_byte_rate": "100"})
    before = quotas.client("u", "c")
    assert before is not None
    assert RequestUsage(before, clock.now, 1000).settle(clock.now) == 0
    quotas.settings_changed(CLIENTS, "c", {"producer_byte_rate": "50"})
    after = quotas.client("u", "c")
    assert after is not None
    assert RequestUsage(after, clock.now, 100).settle(clock.now) == 12_000


def test_a_produce_request_waits_for_its_bytes(limited, clock: Clock) -> None:
    """Also one without an answer; the same request is settled once."""
    client = limited(producer_byte_rate="100")
    usage = RequestUsage(client, clock.now, 1500)
    assert usage.settle(clock.now, is_answered=False) == 5_000
    assert usage.settle(clock.now, is_answered=False) == 5_000


def test_other_requests_do_not_count_as_produced(limited, clock: Clock) -> None:
    """Only produce requests have bytes."""
    client = limited(producer_byte_rate="100")
    assert RequestUsage(client, clock.now).settle(clock.now) == 0


def test_a_fetch_beyond_the_quota_is_given_nothing(limited, clock: Clock) -> None:
    """And does not count, so that the client gets its records when it has waited."""
    client = limited(consumer_byte_rate="100")
    assert client.fetch_bytes_max == 1000
    assert RequestUsage(client, clock.now).takes_fetch(900, clock.now)
    second = RequestUsage(client, clock.now)
    assert not second.takes_fetch(600, clock.now)
    assert second.settle(clock.now) == 5_000
    clock.now += 11
    assert RequestUsage(client, clock.now).takes_fetch(600, clock.now)


def test_time_on_the_loop_is_counted_in_percent_of_a_core(limited, clock: Clock) -> None:
    """Waits are not; nobody waits longer than a sample for time alone."""
    client = limited(request_percentage="10")
    usage = RequestUsage(client, clock.now)
    usage.stopped(clock.now + 0.6)
    usage.started(clock.now + 60)
    usage.stopped(clock.now + 60.4)
    usage.stopped(clock.now + 90)
    # One second is 100 %, which is what ten seconds at 10 % allow.
    assert usage.settle(clock.now + 90) == 0
    slow = RequestUsage(client, clock.now + 90)
    assert slow.settle(clock.now + 90.05) == 450
    slower = RequestUsage(client, clock.now + 91)
    assert slower.settle(clock.now + 96) == 1_000


def test_time_of_a_request_without_answer_is_not_counted(limited, clock: Clock) -> None:
    """As in Kafka, for acks=0."""
    client = limited(request_percentage="1")
    assert RequestUsage(client, clock.now).settle(clock.now + 50, is_answered=False) == 0


def test_a_strict_quota_of_mutations_refuses(limited, clock: Clock) -> None:
    """What comes while it is exhausted; the burst that exhausts it is served without a wait."""
    client = limited(controller_mutation_rate="1")
    burst = RequestUsage(client, clock.now)
    assert burst.limits_mutations
    assert burst.takes_mutations(13, clock.now, is_strict=True)
    assert burst.settle(clock.now) == 0
    refused = RequestUsage(client, clock.now)
    assert not refused.takes_mutations(1, clock.now, is_strict=True)
    # What the request itself has lasted is over.
    assert refused.settle(clock.now + 0.5) == 1_500


def test_a_permissive_quota_of_mutations_throttles(limited, clock: Clock) -> None:
    """Everything is served, and waited for afterwards."""
    client = limited(controller_mutation_rate="1")
    usage = RequestUsage(client, clock.now)
    assert usage.takes_mutations(13, clock.now, is_strict=False)
    assert usage.settle(clock.now) == 2_000


def test_without_a_quota_of_mutations_all_are_taken(limited, clock: Clock) -> None:
    """The client has another quota."""
    usage = RequestUsage(limited(producer_byte_rate="1"), clock.now)
    assert not usage.limits_mutations
    assert usage.takes_mutations(10_000, clock.now, is_strict=True)


def test_connections_beyond_the_rate_of_an_address_are_held(
    quotas: ClientQuotas, clock: Clock
) -> None:
    """For a second at most; what is turned away does not count."""
    assert quotas.connection_throttle_ms("1.1.1.1") == 0
    quotas.settings_changed(IPS, "<default>", {"connection_creation_rate": "1"})
    held = [quotas.connection_throttle_ms("1.1.1.1") for _ in range(14)]
    assert held == [0] * 10 + [1_000] * 4
    assert quotas.connection_throttle_ms("2.2.2.2") == 0
    clock.now += 11
    assert quotas.connection_throttle_ms("1.1.1.1") == 0


def test_memory_does_not_follow_the_names_of_clients(
    quotas: ClientQuotas, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Client ids come from whoever connects: old measures make room, then the oldest half."""
    monkeypatch.setattr(clients, "_KEPT_MAX", 10)
    settings = {"producer_byte_rate": "10", "controller_mutation_rate": "1"}
    quotas.settings_changed(CLIENTS, "<default>", settings)
    for number in range(100):
        clock.now += 0.01
        found = quotas.client("u", str(number))
        assert found is not None and found.produce is not None
        found.produce.record(1, clock.now * 1000)
        assert len(quotas._rates) <= 10
        assert len(quotas._buckets) <= 10
        assert len(quotas._clients) <= 10
    clock.now += 60
    quotas.client("u", "new")
    assert len(quotas._rates) <= 6


def test_what_is_used_can_be_shown(quotas: ClientQuotas, clock: Clock) -> None:
    """Each measure with those who share it, for metrics."""
    quotas.settings_changed(USERS, "u", {"producer_byte_rate": "100"})
    quotas.settings_changed(CLIENTS, "c", {"controller_mutation_rate": "2"})
    client = quotas.client("u", "c")
    assert client is not None
    usage = RequestUsage(client, clock.now, 500)
    usage.takes_mutations(4, clock.now, is_strict=True)
    usage.settle(clock.now)
    assert quotas.measured() == [
        Measured("producer_byte_rate", "u", "", 100, used=50),
        Measured("controller_mutation_rate", "", "c", 2, tokens=18),
    ]
