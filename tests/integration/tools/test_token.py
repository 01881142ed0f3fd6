"""`ottla token …` with a scripted broker that issues tokens, and with one that refuses."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.wire.messages import create_delegation_token as creating
from ottla.wire.messages import describe_delegation_token as describing
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenResponse
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenResponse
from tests.unit.client.conftest import ScriptedBroker

HMAC = b"h" * 64
HMAC_TEXT = base64.b64encode(HMAC).decode()
HOUR_MS = 3_600_000
SHOWN = {
    "token_id": "id",
    "hmac": HMAC_TEXT,
    "owner": "User:ann",
    "requester": "User:root",
    "renewers": ["User:ben"],
    "issue_ms": 0,
    "expiry_ms": HOUR_MS,
    "max_ms": 2 * HOUR_MS,
    "issued": "1970-01-01T00:00:00.000Z",
    "expires": "1970-01-01T01:00:00.000Z",
    "ends": "1970-01-01T02:00:00.000Z",
}


class _Issuer:
    """A scripted broker that has issued one token; `requests` are those that change tokens."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.requests: list[Any] = []
        self.described: list[Any] = []
        broker.answers["CreateDelegationToken"] = self._create
        broker.answers["DescribeDelegationToken"] = self._describe
        broker.answers["RenewDelegationToken"] = self._renew
        broker.answers["ExpireDelegationToken"] = self._expire

    def _create(self, request: Any) -> creating.CreateDelegationTokenResponse:
        self.requests.append(request)
        return creating.CreateDelegationTokenResponse(
            principal_type="User",
            principal_name="ann",
            token_requester_principal_type="User",
            token_requester_principal_name="root",
            expiry_timestamp_ms=HOUR_MS,
            max_timestamp_ms=2 * HOUR_MS,
            token_id="id",
            hmac=HMAC,
        )

    def _describe(self, request: Any) -> describing.DescribeDelegationTokenResponse:
        self.described.append(request.owners)
        renewer = describing.DescribedDelegationTokenRenewer(
            principal_type="User", principal_name="ben"
        )
        return describing.DescribeDelegationTokenResponse(
            tokens=[
                describing.DescribedDelegationToken(
                    principal_type="User",
                    principal_name="ann",
                    token_requester_principal_type="User",
                    token_requester_principal_name="root",
                    expiry_timestamp=HOUR_MS,
                    max_timestamp=2 * HOUR_MS,
                    token_id="id",
                    hmac=HMAC,
                    renewers=[renewer],
                )
            ]
        )

    def _renew(self, request: Any) -> RenewDelegationTokenResponse:
        self.requests.append(request)
        return RenewDelegationTokenResponse(expiry_timestamp_ms=HOUR_MS)

    def _expire(self, request: Any) -> ExpireDelegationTokenResponse:
        self.requests.append(request)
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=HOUR_MS)


@pytest.fixture(name="issuer")
def _issuer(
    run: Any, new_broker: Callable[..., ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> _Issuer:
    """Return a scripted broker, which `run` uses."""
    # `run` names its own cluster in the environment, which this replaces.
    del run
    broker = new_broker()
    monkeypatch.setenv("OTTLA_BOOTSTRAP", broker.bootstrap)
    return _Issuer(broker)


def test_a_token_is_issued(run: Any, issuer: _Issuer) -> None:
    """The sentence has the id and the HMAC, with which a client logs in; JSON has all fields."""
    done = run("token", "create")
    assert (done.code, done.errors) == (0, "")
    assert done.out.decode().splitlines() == [
        "Created token id of User:ann, which expires at 1970-01-01T01:00:00.000Z.",
        f"Its HMAC, the password: {HMAC_TEXT}",
    ]
    (request,) = issuer.requests
    assert (request.renewers, request.max_lifetime_ms) == ([], -1)
    words = ("--owner", "User:ann", "--renewer", "User:ben", "--max-lifetime", "2h")
    assert run("token", "create", *words, "--output", "json").json == SHOWN
    request = issuer.requests[-1]
    assert (request.owner_principal_type, request.owner_principal_name) == ("User", "ann")
    assert [row.principal_name for row in request.renewers] == ["ben"]
    assert request.max_lifetime_ms == 2 * HOUR_MS


def test_tokens_are_listed_without_their_passwords(run: Any, issuer: _Issuer) -> None:
    """Only JSON has the HMACs. All tokens are requested, or the tokens of owners."""
    done = run("token", "list")
    assert HMAC_TEXT not in done.out.decode()
    assert done.rows == [
        [
            "id",
            "User:ann",
            "User:root",
            "User:ben",
            SHOWN["issued"],
            SHOWN["expires"],
            SHOWN["ends"],
        ]
    ]
    assert run("token", "list", "--owner", "User:ann", "--output", "json").json == [SHOWN]
    assert issuer.described[0] is None
    assert [row.principal_name for row in issuer.described[1]] == ["ann"]


@pytest.mark.parametrize(
    ("text", "token_id", "name"), [("id", "id", "token id"), (HMAC_TEXT, None, "the token")]
)
def test_a_token_is_renewed_by_id_or_hmac(
    run: Any, issuer: _Issuer, text: str, token_id: str | None, name: str
) -> None:
    """An HMAC needs no permission to describe tokens, and no sentence repeats it."""
    done = run("token", "renew", text, "--period", "1h")
    assert done.out.decode() == f"Renewed {name}: it expires at 1970-01-01T01:00:00.000Z.\n"
    (request,) = issuer.requests
    assert (bytes(request.hmac), request.renew_period_ms) == (HMAC, HOUR_MS)
    assert len(issuer.described) == (token_id is not None)
    assert run("token", "renew", text, "--output", "json").json == {
        "token_id": token_id,
        "expiry_ms": HOUR_MS,
        "expires": SHOWN["expires"],
    }
    assert issuer.requests[-1].renew_period_ms == -1


def test_a_token_is_deleted_or_expires_later(run: Any, issuer: _Issuer) -> None:
    """Without a period it is deleted at once."""
    assert run("token", "expire", "id", "--yes").out.decode() == "Deleted token id.\n"
    done = run("token", "expire", "id", "--period", "1h", "--output", "json")
    assert done.json == {
        "token_id": "id",
        "deleted": False,
        "expiry_ms": HOUR_MS,
        "expires": SHOWN["expires"],
    }
    assert [row.expiry_time_period_ms for row in issuer.requests] == [-1, HOUR_MS]
    assert all(bytes(row.hmac) == HMAC for row in issuer.requests)


@pytest.mark.parametrize("words", [["renew", "id"], ["expire", "id", "--yes"]])
def test_explained_requests_hide_the_password(run: Any, issuer: _Issuer, words: list[str]) -> None:
    """The HMAC of a token that was named by its id is not on standard error."""
    errors = run("token", *words, "--explain").errors
    assert "DelegationToken v2 (hmac=…, " in errors
    assert repr(HMAC) not in errors


def test_deletion_is_confirmed_on_a_terminal(
    run: Any, issuer: _Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply no leaves the token, and --period needs no confirmation."""
    monkeypatch.setattr("ottla.tools.token.expire.is_terminal", lambda: True)
    done = run("token", "expire", "id", stdin=b"n\n")
    assert (done.code, issuer.requests) == (1, [])
    assert "Delete token id?" in done.errors
    assert run("token", "expire", "id", "--period", "1h").code == 0


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["create", "--owner", "ann"], 1, "'ann' is not a principal: write it like 'User:ann'"),
        (["create", "--renewer", "User:"], 1, "'User:' is not a principal"),
        (["create", "--max-lifetime", "soon"], 2, "soon"),
        (["create", "--max-lifetime", "0s"], 2, "'0s' must be longer than 0"),
        (["list", "--owner", "ann"], 1, "'ann' is not a principal"),
        (["renew", "other"], 1, "no token has the id 'other': `ottla token list` lists the tokens"),
        (["renew", "id", "--period", "0s"], 2, "'0s' must be longer than 0"),
        (["expire", "other", "--yes"], 1, "no token has the id 'other'"),
        (["expire", "id", "--period", "-1"], 2, "-1"),
    ],
)
def test_wrong_words_are_a_sentence(
    run: Any, issuer: _Issuer, words: list[str], code: int, sentence: str
) -> None:
    """Nothing is printed on standard output, and no token is issued or changed."""
    done = run("token", *words)
    assert (done.code, done.out) == (code, b"")
    assert sentence in done.errors
    assert issuer.requests == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "`ottla token list` lists the tokens"),
        (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "set delegation.token.secret.key"),
    ],
)
def test_errors_of_the_cluster_have_a_remedy(
    run: Any,
    new_broker: Callable[..., ScriptedBroker],
    monkeypatch: pytest.MonkeyPatch,
    error: ErrorCode,
    sentence: str,
) -> None:
    """The exit code is 1."""
    broker = new_broker()
    monkeypatch.setenv("OTTLA_BOOTSTRAP", broker.bootstrap)
    broker.answers["RenewDelegationToken"] = lambda request: RenewDelegationTokenResponse(
        error_code=int(error)
    )
    done = run("token", "renew", HMAC_TEXT)
    assert (done.code, done.out) == (1, b"")
    assert sentence in done.errors


@pytest.mark.parametrize(
    "words", [["create"], ["list"], ["renew", HMAC_TEXT], ["expire", "--yes", HMAC_TEXT]]
)
def test_a_connection_without_authentication_is_explained(run: Any, words: list[str]) -> None:
    """Ottla's broker refuses the requests, as Apache Kafka's does on a listener without SASL."""
    done = run("token", *words)
    assert (done.code, done.out) == (1, b"")
    assert "connect with SASL or a client's certificate (--command-config FILE)" in done.errors
