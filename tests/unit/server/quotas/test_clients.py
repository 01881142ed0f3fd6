"""The use of quotas by clients: shared measures, the cost of requests, and expiration."""

from collections.abc import Callable

import pytest

from ottla.server.quotas import clients
from ottla.server.quotas.clients import ClientQuotas, LimitedClient, Measured, RequestUsage
from ottla.server.quotas.rates import QuotaWindow

USERS, CLIENTS, IPS = "users", "clients", "ips"
WINDOW = QuotaWindow(samples=11, sample_ms=1000)


class Clock:
    """A clock that advances only when a test advances it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def quotas(clock: Clock) -> ClientQuotas:
    """Return the quotas of a broker, with none set."""
    return ClientQuotas(WINDOW, WINDOW, clock)


@pytest.fixture
def limited(quotas: ClientQuotas) -> Callable[..., LimitedClient]:
    """Return a function that creates the client `c` of ANONYMOUS with these settings."""

    def limit(**settings: str) -> LimitedClient:
        quotas.settings_changed(CLIENTS, "c", settings)
        client = quotas.client("ANONYMOUS", "c")
        assert client is not None
        return client

    return limit


def test_client_without_a_quota_is_not_tracked(quotas: ClientQuotas) -> None:
    """A client that no quota applies to is not tracked."""
    assert quotas.client("u", "c") is None
    quotas.settings_changed(CLIENTS, "d", {"producer_byte_rate": "10"})
    assert quotas.client("u", "c") is None
    assert quotas.client("u", "d") is not None


def test_changes_are_reported(quotas: ClientQuotas) -> None:
    """Listeners learn whether any client can be limited; other settings change nothing."""
    changes: list[bool] = []
    quotas.on_change.append(changes.append)
    quotas.settings_changed(USERS, "u", {"SCRAM-SHA-256": "x"})
    quotas.settings_changed("client-metrics", "m", {"interval.ms": "100"})
    assert (changes, quotas.generation) == ([], 0)
    quotas.settings_changed(IPS, "1.1.1.1", {"connection_creation_rate": "1"})
    quotas.settings_changed(USERS, "u", {"producer_byte_rate": "10"})
    quotas.settings_changed(USERS, "u", {})
    assert (changes, quotas.generation) == ([False, True, False], 3)


def test_the_clients_of_a_user_share_its_quota(quotas: ClientQuotas) -> None:
    """Clients under the default client id have one measure each."""
    quotas.settings_changed(USERS, "u", {"producer_byte_rate": "10"})
    quotas.settings_changed(CLIENTS, "<default>", {"consumer_byte_rate": "10"})
    one, two = quotas.client("u", "c"), quotas.client("u", "d")
    assert one is not None and two is not None
    assert one.produce is two.produce is not None
    assert one.fetch is not two.fetch


def test_use_is_kept_if_the_limit_changes(quotas: ClientQuotas, clock: Clock) -> None:
    """A new limit also applies to use before the change."""
    quotas.settings_changed(CLIENTS, "c", {"producer_byte_rate": "100"})
    before = quotas.client("u", "c")
    assert before is not None
    assert RequestUsage(before, clock.now, 1000).settle(clock.now) == 0
    quotas.settings_changed(CLIENTS, "c", {"producer_byte_rate": "50"})
    after = quotas.client("u", "c")
    assert after is not None
    assert RequestUsage(after, clock.now, 100).settle(clock.now) == 12_000


def test_a_produce_request_waits_for_its_bytes(limited, clock: Clock) -> None:
    """Requests with acks=0 count as well, and a request is settled once."""
    client = limited(producer_byte_rate="100")
    usage = RequestUsage(client, clock.now, 1500)
    assert usage.settle(clock.now, is_answered=False) == 5_000
    assert usage.settle(clock.now, is_answered=False) == 5_000


def test_other_requests_do_not_count_as_produced(limited, clock: Clock) -> None:
    """Only produce requests count bytes against the produce quota."""
    client = limited(producer_byte_rate="100")
    assert RequestUsage(client, clock.now).settle(clock.now) == 0


def test_fetch_beyond_the_quota_returns_nothing(limited, clock: Clock) -> None:
    """A fetch beyond the quota returns no records and does not count, so the client gets them
    later.
    """
    client = limited(consumer_byte_rate="100")
    assert client.fetch_bytes_max == 1000
    assert RequestUsage(client, clock.now).takes_fetch(900, clock.now)
    second = RequestUsage(client, clock.now)
    assert not second.takes_fetch(600, clock.now)
    assert second.settle(clock.now) == 5_000
    clock.now += 11
    assert RequestUsage(client, clock.now).takes_fetch(600, clock.now)


def test_time_on_the_loop_is_counted_in_percent_of_a_core(limited, clock: Clock) -> None:
    """Waits do not count, and request time alone throttles for at most one sample."""
    client = limited(request_percentage="10")
    usage = RequestUsage(client, clock.now)
    usage.stopped(clock.now + 0.6)
    usage.started(clock.now + 60)
    usage.stopped(clock.now + 60.4)
    usage.stopped(clock.now + 90)
    # One second is 100 %, which equals ten seconds at 10 %.
    assert usage.settle(clock.now + 90) == 0
    slow = RequestUsage(client, clock.now + 90)
    assert slow.settle(clock.now + 90.05) == 450
    slower = RequestUsage(client, clock.now + 91)
    assert slower.settle(clock.now + 96) == 1_000


def test_time_of_a_request_without_answer_is_not_counted(limited, clock: Clock) -> None:
    """Request time of acks=0 does not count, as in Kafka."""
    client = limited(request_percentage="1")
    assert RequestUsage(client, clock.now).settle(clock.now + 50, is_answered=False) == 0


def test_strict_quota_of_mutations_rejects(limited, clock: Clock) -> None:
    """Requests are rejected while it is exhausted; the burst that exhausts it is not throttled."""
    client = limited(controller_mutation_rate="1")
    burst = RequestUsage(client, clock.now)
    assert burst.limits_mutations
    assert burst.takes_mutations(13, clock.now, is_strict=True)
    assert burst.settle(clock.now) == 0
    refused = RequestUsage(client, clock.now)
    assert not refused.takes_mutations(1, clock.now, is_strict=True)
    # The duration of the request itself has passed.
    assert refused.settle(clock.now + 0.5) == 1_500


def test_a_permissive_quota_of_mutations_throttles(limited, clock: Clock) -> None:
    """All mutations are served, and the client is throttled afterwards."""
    client = limited(controller_mutation_rate="1")
    usage = RequestUsage(client, clock.now)
    assert usage.takes_mutations(13, clock.now, is_strict=False)
    assert usage.settle(clock.now) == 2_000


def test_client_without_a_quota_of_mutations_is_not_limited(limited, clock: Clock) -> None:
    """A client with another quota has no limit of mutations."""
    usage = RequestUsage(limited(producer_byte_rate="1"), clock.now)
    assert not usage.limits_mutations
    assert usage.takes_mutations(10_000, clock.now, is_strict=True)


def test_connections_beyond_the_rate_of_an_address_are_delayed(
    quotas: ClientQuotas, clock: Clock
) -> None:
    """The delay is one second at most, and rejected connections do not count."""
    assert quotas.connection_throttle_ms("1.1.1.1") == 0
    quotas.settings_changed(IPS, "<default>", {"connection_creation_rate": "1"})
    held = [quotas.connection_throttle_ms("1.1.1.1") for _ in range(14)]
    assert held == [0] * 10 + [1_000] * 4
    assert quotas.connection_throttle_ms("2.2.2.2") == 0
    clock.now += 11
    assert quotas.connection_throttle_ms("1.1.1.1") == 0


def test_memory_does_not_grow_with_client_ids(
    quotas: ClientQuotas, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Client ids are chosen by clients: expired measures are removed first, then the oldest half."""
    monkeypatch.setattr(clients, "_KEPT_MAX", 10)
    settings = {"producer_byte_rate": "10", "controller_mutation_rate": "1"}
    quotas.settings_changed(CLIENTS, "<default>", settings)
    for number in range(100):
        clock.now += 0.01
        client = quotas.client("u", str(number))
        assert client is not None and client.produce is not None
        client.produce.record(1, clock.now * 1000)
        assert len(quotas._rates) <= 10
        assert len(quotas._buckets) <= 10
        assert len(quotas._clients) <= 10
    clock.now += 60
    quotas.client("u", "new")
    assert len(quotas._rates) <= 6


def test_measures_are_listed(quotas: ClientQuotas, clock: Clock) -> None:
    """Metrics show each measure with the clients that share it."""
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
