"""The delegation tokens of a cluster: kept in the tree, known to every broker, removed in time."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import SeededRng
from ottla.base.tasks import Tasks
from ottla.cluster.token_znodes import TokenChangeNode, TokenNode
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.port import ConnectionSuspended, Coordination
from ottla.cluster.znodes import DelegationTokensNode
from ottla.security.principal import Principal
from ottla.security.scram import ScramMechanism
from ottla.security.tokens import Lifetimes
from ottla.server.authentication import tokens
from ottla.server.authentication.tokens import DelegationTokens, IssuedToken, Settings
from ottla.testing.sim.files import SimFileSystem

ANN, BEN = Principal("User", "ann"), Principal("User", "ben")
SETTINGS = Settings("secret", Lifetimes(max_ms=10_000, expiry_ms=3000), check_seconds=1.0)
SCRAM = ScramMechanism.SCRAM_SHA_256


class Clock:
    """Time that the test moves; a task that sleeps waits until then."""

    def __init__(self) -> None:
        self.now = 100.0
        self._moved = asyncio.Event()

    def time_ms(self) -> int:
        return 1_000_000 + round(self.now * 1000)

    def monotonic(self) -> float:
        return self.now

    def cpu_seconds(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            await self._moved.wait()

    async def move(self, seconds: float) -> None:
        self.now += seconds
        self._moved.set()
        self._moved = asyncio.Event()
        await settle()


async def settle() -> None:
    """Let the tasks run until they wait."""
    for _ in range(60):
        await asyncio.sleep(0)


class Yard:
    """Brokers that share a tree and a clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.tree = EmbeddedTree(SimFileSystem(), self.clock)
        self.tasks = Tasks(clock=self.clock)

    async def broker(self, settings: Settings = SETTINGS, seed: int = 1) -> DelegationTokens:
        started = DelegationTokens(settings, self.clock, SeededRng(seed), self.tasks)
        await started.start(self.tree.session())
        return started


@pytest.fixture
async def yard() -> AsyncIterator[Yard]:
    """Return a yard and end its tasks."""
    yard = Yard()
    yield yard
    await yard.tasks.close()


async def create(broker: DelegationTokens, lifetime_ms: int = -1) -> IssuedToken:
    """Return a token of ann that ben may renew."""
    return await broker.create(ANN, ANN, [BEN], lifetime_ms)


async def code_of(attempt: Callable[[], object]) -> ErrorCode:
    """Return the error of a request."""
    with pytest.raises(ApiError) as caught:
        await attempt()  # type: ignore[misc]
    return caught.value.code


async def test_token_is_in_the_tree_without_its_secret(yard: Yard) -> None:
    """Its node is in Kafka's place, and a notification names it."""
    issued = await create(await yard.broker())
    session, token_id = yard.tree.session(), issued.token.token_id
    assert await session.children(DelegationTokensNode.PATH) == [token_id]
    path = TokenNode.path(token_id)
    data, _ = await session.get(path)
    assert TokenNode.decode(path, data) == issued.token
    (name,) = await session.children(TokenChangeNode.PARENT)
    assert name == "token_change_0000000000"
    data, _ = await session.get(f"{TokenChangeNode.PARENT}/{name}")
    assert data.decode() == token_id
    assert len(token_id) == 22


@pytest.mark.parametrize("owner", [Principal("Group", "ann"), Principal("", "ann")])
async def test_client_does_not_log_in_with_a_token_of_another_type(
    yard: Yard, owner: Principal, caplog: pytest.LogCaptureFixture
) -> None:
    """Another program has written it: it is reported, and can be described and removed."""
    first = await yard.broker()
    issued = await create(first)
    path = TokenNode.path(issued.token.token_id)
    session = yard.tree.session()
    await session.set(path, TokenNode.encode(issued.token._replace(owner=owner)))
    second = await yard.broker(seed=2)
    assert first.login(SCRAM, issued.token.token_id).user == "ann"
    assert second.login(SCRAM, issued.token.token_id).user == ""
    assert path in caplog.text
    (described,) = second.describe(None)
    assert described.token.owner == owner
    await second.expire(BEN, described.hmac, -1)
    assert second.describe(None) == []


async def test_every_broker_knows_every_token(yard: Yard) -> None:
    """One that was created, renewed and deleted elsewhere, and those from before its start."""
    first = await yard.broker()
    before = await create(first)
    second = await yard.broker(seed=2)
    later = await create(first)
    await settle()
    assert second.describe(None) == [before, later]
    expiry_ms = await second.renew(BEN, later.hmac, 5000)
    await settle()
    assert [issued.token.expiry_ms for issued in first.describe(None)] == [
        before.token.expiry_ms,
        expiry_ms,
    ]
    assert await first.expire(ANN, later.hmac, -1) == yard.clock.time_ms()
    await settle()
    assert second.describe(None) == [before]
    assert second.login(SCRAM, later.token.token_id).user == ""


async def test_principals_select_tokens(yard: Yard) -> None:
    """Those that they own, have requested or may renew; an empty list selects none."""
    broker = await yard.broker()
    own = await create(broker)
    other = await broker.create(BEN, ANN, [], -1)
    assert broker.describe([BEN]) == [own, other]
    assert broker.describe([Principal("User", "eve")]) == []
    assert broker.describe([]) == []


async def test_unknown_and_foreign_tokens_are_not_changed(yard: Yard) -> None:
    """The errors are Kafka's."""
    broker, eve = await yard.broker(), Principal("User", "eve")
    issued = await create(broker)
    for hmac, principal, code in (
        (b"", ANN, ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
        (b"x" * 64, ANN, ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
        (issued.hmac, eve, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
    ):
        assert await code_of(lambda: broker.renew(principal, hmac, -1)) is code  # noqa: B023
        assert await code_of(lambda: broker.expire(principal, hmac, -1)) is code  # noqa: B023
    assert broker.describe(None) == [issued]


async def test_token_that_was_deleted_meanwhile_is_not_written_again(yard: Yard) -> None:
    """A broker that has not read the notification yet reports it as not found."""
    broker = await yard.broker()
    issued = await create(broker)
    await settle()
    await yard.tree.session().delete(TokenNode.path(issued.token.token_id))
    code = await code_of(lambda: broker.renew(ANN, issued.hmac, -1))
    assert code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert broker.describe(None) == []


async def test_expired_tokens_are_removed(yard: Yard) -> None:
    """Every broker removes them at its next check; until then they cannot be renewed."""
    first, second = await yard.broker(), await yard.broker(seed=2)
    issued, longer = await create(first), await create(first)
    await first.renew(ANN, longer.hmac, 9000)
    await yard.clock.move(3.0)
    assert len(second.describe(None)) == 2
    yard.clock.now += 0.5
    code = await code_of(lambda: first.renew(ANN, issued.hmac, -1))
    assert code is ErrorCode.DELEGATION_TOKEN_EXPIRED
    await yard.clock.move(0.5)
    for broker in (first, second):
        assert [row.token.token_id for row in broker.describe(None)] == [longer.token.token_id]
    assert await yard.tree.session().children(DelegationTokensNode.PATH) == [longer.token.token_id]


async def test_login_has_the_owner_and_the_credential(yard: Yard) -> None:
    """The credential stays the same, also after a renewal, which changes only the expiry."""
    broker = await yard.broker()
    issued = await broker.create(BEN, ANN, [], -1)
    login = broker.login(SCRAM, issued.token.token_id)
    assert (login.user, login.expiry_ms) == ("ben", issued.token.expiry_ms)
    expiry_ms = await broker.renew(BEN, issued.hmac, 9000)
    assert broker.login(SCRAM, issued.token.token_id) == login._replace(expiry_ms=expiry_ms)
    other = broker.login(ScramMechanism.SCRAM_SHA_512, issued.token.token_id)
    assert other.credential != login.credential


async def test_ids_of_tokens_have_the_same_salt_on_every_broker(yard: Yard) -> None:
    """Those that no token has, too: a restart does not show which ids exist."""
    first, second = await yard.broker(), await yard.broker(seed=2)
    issued = await create(first)
    await settle()
    for token_id in (issued.token.token_id, "none"):
        login = first.login(SCRAM, token_id)
        assert second.login(SCRAM, token_id) == login
        assert (len(login.credential.salt), login.credential.iterations) == (16, 4096)
    assert first.login(SCRAM, "none").user == ""


async def test_old_notifications_are_removed(yard: Yard) -> None:
    """After 15 minutes, when another change arrives; all brokers have read them by then."""
    broker = await yard.broker(SETTINGS._replace(lifetimes=Lifetimes(10**9, 10**9)))
    await yard.broker(seed=2)
    await create(broker)
    await settle()
    await yard.clock.move(tokens.NOTIFICATION_SECONDS - 1)
    await create(broker)
    await settle()
    session = yard.tree.session()
    assert len(await session.children(TokenChangeNode.PARENT)) == 2
    await yard.clock.move(2)
    await create(broker)
    await settle()
    names = await session.children(TokenChangeNode.PARENT)
    assert [name[-1] for name in names] == ["1", "2"]


async def test_damaged_token_is_ignored(yard: Yard) -> None:
    """The others are loaded."""
    issued = await create(await yard.broker())
    await yard.tree.session().create(TokenNode.path("damaged"), b"{}")
    assert (await yard.broker(seed=2)).describe(None) == [issued]


async def test_new_session_reads_all_tokens_again(yard: Yard) -> None:
    """A token that was deleted during the interruption is gone."""
    broker = await yard.broker()
    kept, deleted = await create(broker), await create(broker)
    await yard.tree.session().delete(TokenNode.path(deleted.token.token_id))
    await broker.start(yard.tree.session())
    assert broker.describe(None) == [kept]


async def test_unreachable_tree_is_an_error_that_clients_retry(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is kept in memory that may not be in the tree."""
    broker = await yard.broker()
    session: Coordination = yard.tree.session()
    await broker.start(session)

    async def suspended(operations: object) -> None:
        raise ConnectionSuspended("/delegation_token")

    monkeypatch.setattr(session, "multi", suspended)
    assert await code_of(lambda: create(broker)) is ErrorCode.REQUEST_TIMED_OUT
    assert broker.describe(None) == []
