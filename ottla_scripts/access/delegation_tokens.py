"""`kafka-delegation-tokens` (org.apache.kafka.tools.DelegationTokenCommand, KIP-48).

As in Apache Kafka 4.3.0, --describe without --owner-principal finds no tokens: `ottla token list`
lists all.
"""

import time
from collections.abc import Sequence

from ottla.base.errors import ApiError
from ottla.client.admin.apache import delegation_tokens as admin
from ottla.client.admin.apache.delegation_tokens import DelegationToken
from ottla.client.brokers import Brokers
from ottla.operations.access import changes
from ottla.operations.access.tokens import hmac_of, hmac_text, principal_parts, row_of
from ottla.operations.changes import Change
from ottla_scripts.exits import RejectedOption, UsageError
from ottla_scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Options, Spec, long
from ottla_scripts.java_errors import java_exception
from ottla_scripts.printing import as_json, err, java_list, left, out
from ottla_scripts.session import cluster

SPEC = Spec(
    "This tool helps to create, renew, expire, or describe delegation tokens.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "create": Flag("Create a token."),
        "renew": Flag("Postpone the expiry of a token."),
        "expire": Flag("Let a token expire, or delete it."),
        "describe": Flag("Show the tokens that principals own or may renew."),
        "owner-principal": Flag("An owner, as in User:anna; may be repeated.", "owner-principal", is_optional=True),
        "renewer-principal": Flag("A renewer, as in User:ben; may be repeated.", "renewer-principal", is_optional=True),
        "max-life-time-period": Flag("The longest life of the token in ms; -1 is the brokers' default.", "ms", long, is_optional=True),
        "renew-time-period": Flag("The time until the token expires in ms; -1 is the brokers' default.", "ms", long, is_optional=True),
        "expiry-time-period": Flag("The time until the token expires in ms; -1 deletes it at once.", "ms", long, is_optional=True),
        "hmac": Flag("The HMAC of the token, in base64.", "hmac", is_optional=True),
    },
)  # fmt: skip
_REQUIRED: dict[str, tuple[str, ...]] = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
_FORBIDDEN: dict[str, tuple[str, ...]] = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    "expire": ("max-life-time-period", "renew-time-period", "owner-principal"),
    "describe": ("renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"),
}
# The sentences of Java for an option without a value.
_NO_NUMBER = (
    'Cannot invoke "java.lang.Long.longValue()" because the return value of '
    '"joptsimple.OptionSet.valueOf(joptsimple.OptionSpec)" is null'
)
_NO_TEXT = 'Cannot invoke "String.getBytes(java.nio.charset.Charset)" because "src" is null'
_HEADS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
_WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)


def run(options: Options) -> int:
    """Run the action of the command line."""
    chosen = [name for name in _REQUIRED if name in options]
    if len(chosen) != 1:
        raise UsageError(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    (action,) = chosen
    options.require("bootstrap-server", "command-config", *_REQUIRED[action])
    options.forbid(action, *_FORBIDDEN[action])
    actions = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}
    try:
        with cluster(options) as brokers:
            actions[action](brokers, options)
    except (ApiError, RejectedOption) as error:
        err(java_exception(error))
        return 1
    except UsageError:
        raise
    except ValueError as error:
        err(str(error))
        return 1
    return 0


def _create(brokers: Brokers, options: Options) -> None:
    renewers = _principals(options, "renewer-principal")
    lifetime_ms = _number(options, "max-life-time-period")
    if not options.is_json:
        listed = java_list(f"{kind}:{name}" for kind, name in renewers)
        out(
            f"Calling create token operation with renewers :{listed} , "
            f"max-life-time-period :{lifetime_ms}"
        )
    owners = _principals(options, "owner-principal")
    token = changes.create_token(
        brokers,
        owner=owners[0] if owners else "",
        renewers=renewers,
        max_lifetime_ms=lifetime_ms,
    ).token
    if options.is_json:
        as_json(row_of(token))
        return
    out(f"Created delegation token with tokenId : {token.token_id}")
    out(_table([token]), end="")


def _renew(brokers: Brokers, options: Options) -> None:
    period_ms = _number(options, "renew-time-period")
    hmac = _hmac(options, f"renew token operation with hmac :{{}} , renew-time-period :{period_ms}")
    _print_expiry(options, "renew", changes.renew_token(brokers, "", hmac, period_ms=period_ms))


def _expire(brokers: Brokers, options: Options) -> None:
    period_ms = _number(options, "expiry-time-period")
    hmac = _hmac(
        options, f"expire token operation with hmac :{{}} , expire-time-period :{period_ms}"
    )
    _print_expiry(options, "expire", changes.expire_token(brokers, "", hmac, period_ms=period_ms))


def _describe(brokers: Brokers, options: Options) -> None:
    owners = _principals(options, "owner-principal")
    if not options.is_json:
        listed = java_list(f"{kind}:{name}" for kind, name in owners)
        whose = f"owners: {listed}" if owners else "current user."
        out(f"Calling describe token operation for {whose}")
    tokens = admin.unsorted_delegation_tokens(brokers, owners)
    if options.is_json:
        as_json([row_of(token) for token in tokens])
    else:
        out(f"Total number of tokens : {len(tokens)}{_table(tokens)}", end="")


def _principals(options: Options, name: str) -> list[tuple[str, str]]:
    return [principal_parts(text) for text in options.all(name)]


def _number(options: Options, name: str) -> int:
    value = options[name]
    if value is None:
        raise UsageError(_NO_NUMBER)
    return int(value)


def _hmac(options: Options, sentence: str) -> bytes:
    """Return the token of --hmac, after the sentence with it was printed."""
    text = options["hmac"]
    if not options.is_json:
        out(f"Calling {sentence.format('null' if text is None else text)}")
    if text is None:
        raise UsageError(_NO_TEXT)
    return hmac_of(text)


def _print_expiry(options: Options, action: str, change: Change) -> None:
    expiry_ms = int(change.after["expiry_ms"])
    if options.is_json:
        as_json({"expiry_ms": expiry_ms})
    else:
        # As Apache Kafka's, without an end of the line.
        out(f"Completed {action} operation. New expiry date : {_minute(expiry_ms)}", end="")


def _table(tokens: Sequence[DelegationToken]) -> str:
    return "".join(f"\n{left(cells, _WIDTHS)}\n" for cells in (_HEADS, *map(_cells, tokens)))


def _cells(token: DelegationToken) -> tuple[str, ...]:
    return (
        token.token_id,
        hmac_text(token),
        token.owner,
        # Brokers before 3.3 send none.
        token.requester or ":",
        java_list(token.renewers),
        *map(_minute, (token.issue_ms, token.expiry_ms, token.max_ms)),
    )


def _minute(timestamp_ms: int) -> str:
    """Return the local time as Java's SimpleDateFormat `yyyy-MM-dd'T'HH:mm`."""
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(timestamp_ms // 1000))
