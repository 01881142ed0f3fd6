"""`kafka-delegation-tokens` with a scripted broker: its table, its times and its errors."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.operations.access.tokens import hmac_of
from ottla.wire.messages import create_delegation_token as creating
from ottla.wire.messages import describe_delegation_token as describing
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenResponse
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenResponse
from ottla_scripts import entry
from tests.unit.client.conftest import ScriptedBroker
from tests.unit.client.conftest import new_broker as new_broker

pytestmark = pytest.mark.slow

_MINUTE_MS = 60_000
_CREATE = ("--create", "--max-life-time-period", "-1")
_HEAD = (
    "TOKENID         HMAC                           OWNER           REQUESTER       RENEWERS"
    "                  ISSUEDATE       EXPIRYDATE      MAXDATE        "
)


@pytest.fixture(name="broker")
def _broker(
    new_broker: Callable[..., ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ScriptedBroker]:
    """Return a broker; the local time is Shanghai's."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Shanghai")
        time.tzset()
        yield new_broker()
    time.tzset()


@pytest.fixture(name="run")
def _run(
    broker: ScriptedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the script: exit code, standard output and standard error."""
    file = tmp_path / "client.properties"
    file.write_text("client.id=c\n")
    cluster = ("--bootstrap-server", broker.bootstrap, "--command-config", str(file))

    def call(*words: str) -> tuple[int, str, str]:
        code = entry.run("kafka-delegation-tokens", [*cluster, *words])
        return (code, *capsys.readouterr())

    return call


def _described(number: int, **fields: Any) -> describing.DescribedDelegationToken:
    return describing.DescribedDelegationToken(
        principal_type="User",
        principal_name="ann",
        token_id=f"id-{number}",
        hmac=b"secret",
        issue_timestamp=0,
        expiry_timestamp=_MINUTE_MS * number,
        max_timestamp=_MINUTE_MS * 60 * 24,
        **fields,
    )


def test_tokens_are_a_table(broker: ScriptedBroker, run: Any) -> None:
    """Each token follows an empty line; times are local, in minutes; old brokers have no requester."""
    renewers = [
        describing.DescribedDelegationTokenRenewer(principal_type="User", principal_name=name)
        for name in ("ben", "eve")
    ]
    requester = {
        "token_requester_principal_type": "User",
        "token_requester_principal_name": "root",
    }
    broker.answers["DescribeDelegationToken"] = lambda request: (
        describing.DescribeDelegationTokenResponse(
            tokens=[_described(2, renewers=renewers, **requester), _described(1)]
        )
    )
    code, out, errors = run("--describe", "--owner-principal", "User:ann")
    assert (code, errors) == (0, "")
    assert out.split("\n") == [
        "Calling describe token operation for owners: [User:ann]",
        "Total number of tokens : 2",
        _HEAD,
        "",
        "id-2            c2VjcmV0                       User:ann        User:root       "
        "[User:ben, User:eve]      1970-01-01T08:00 1970-01-01T08:02 1970-01-02T08:00",
        "",
        "id-1            c2VjcmV0                       User:ann        :               []        "
        "                1970-01-01T08:00 1970-01-01T08:01 1970-01-02T08:00",
        "",
    ]


def test_no_owners_are_an_empty_list(broker: ScriptedBroker, run: Any) -> None:
    """As Apache Kafka's script sends it, so that the broker finds no tokens."""
    requests = []

    def answer(request: Any) -> describing.DescribeDelegationTokenResponse:
        requests.append(request.owners)
        return describing.DescribeDelegationTokenResponse()

    broker.answers["DescribeDelegationToken"] = answer
    assert run("--describe") == (
        0,
        f"Calling describe token operation for current user.\nTotal number of tokens : 0\n{_HEAD}\n",
        "",
    )
    assert requests == [[]]


def test_created_token_is_printed(broker: ScriptedBroker, run: Any) -> None:
    """With its id, and as JSON."""
    broker.answers["CreateDelegationToken"] = lambda request: (
        creating.CreateDelegationTokenResponse(
            principal_type="User", principal_name="ann", token_id="id", hmac=b"secret"
        )
    )
    code, out, _ = run(*_CREATE, "--renewer-principal", "User:ben")
    assert code == 0
    assert out.splitlines()[:2] == [
        "Calling create token operation with renewers :[User:ben] , max-life-time-period :-1",
        "Created delegation token with tokenId : id",
    ]
    code, out, _ = run(*_CREATE, "--output", "json")
    assert json.loads(out) == {
        "token_id": "id",
        "hmac": "c2VjcmV0",
        "owner": "User:ann",
        "requester": "",
        "renewers": [],
        "issue_ms": 0,
        "expiry_ms": 0,
        "max_ms": 0,
    }


@pytest.mark.parametrize("action", ["renew", "expire"])
def test_new_time_is_printed(broker: ScriptedBroker, run: Any, action: str) -> None:
    """The line has no end, as Apache Kafka's; as JSON the time is in milliseconds."""
    broker.answers["RenewDelegationToken"] = lambda request: RenewDelegationTokenResponse(
        expiry_timestamp_ms=_MINUTE_MS
    )
    broker.answers["ExpireDelegationToken"] = lambda request: ExpireDelegationTokenResponse(
        expiry_timestamp_ms=_MINUTE_MS
    )
    period = {"renew": "renew", "expire": "expiry"}[action]
    words = (f"--{action}", "--hmac", "c2VjcmV0", f"--{period}-time-period", "7")
    assert run(*words) == (
        0,
        f"Calling {action} token operation with hmac :c2VjcmV0 , {action}-time-period :7\n"
        f"Completed {action} operation. New expiry date : 1970-01-01T08:01",
        "",
    )
    code, out, _ = run(*words, "--output", "json")
    assert (code, json.loads(out)) == (0, {"expiry_ms": _MINUTE_MS})


@pytest.mark.parametrize(
    ("code", "exception"),
    [
        (
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
            "DelegationTokenDisabledException: Delegation Token feature is not enabled.",
        ),
        (
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "UnsupportedByAuthenticationException: Delegation Token requests are not allowed on "
            "PLAINTEXT/1-way SSL channels and on delegation token authenticated channels.",
        ),
        (
            ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            "DelegationTokenAuthorizationException: Delegation Token authorization failed.",
        ),
        (
            ErrorCode.DELEGATION_TOKEN_EXPIRED,
            "DelegationTokenExpiredException: Delegation Token is expired.",
        ),
        (
            ErrorCode.INVALID_PRINCIPAL_TYPE,
            "InvalidPrincipalTypeException: Supplied principalType is not supported.",
        ),
    ],
)
def test_errors_have_the_words_of_the_java_client(
    broker: ScriptedBroker, run: Any, code: ErrorCode, exception: str
) -> None:
    """The class of the exception does not always follow from the code's name."""
    broker.answers["CreateDelegationToken"] = lambda request: (
        creating.CreateDelegationTokenResponse(error_code=int(code))
    )
    assert run(*_CREATE) == (
        1,
        "Calling create token operation with renewers :[] , max-life-time-period :-1\n",
        f"org.apache.kafka.common.errors.{exception}\n",
    )


@pytest.mark.parametrize("text", ["", "ab", "abc", "abc=", "ab==", "abcd", "abcd/+0="])
def test_base64_of_java_is_decoded(text: str) -> None:
    """The padding may be missing."""
    padded = text.rstrip("=")
    assert hmac_of(text) == hmac_of(padded) == hmac_of(padded + "=" * (-len(padded) % 4))
