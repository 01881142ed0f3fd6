"""SCRAM credentials of users (DescribeUserScramCredentials, AlterUserScramCredentials; KIP-554).

A cluster stores salted passwords (RFC 5802); passwords cannot be read back.
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism
from ottla.wire.messages import alter_user_scram_credentials as altering
from ottla.wire.messages import describe_user_scram_credentials as describing

__all__ = [
    "ITERATIONS_MAX",
    "ITERATIONS_MIN",
    "ScramCredential",
    "ScramDeletion",
    "ScramMechanism",
    "ScramUpsertion",
    "alter_user_scram_credentials",
    "describe_user_scram_credentials",
    "mechanism_of",
]

_SALT_BYTES = 16


class ScramCredential(NamedTuple):
    """A credential as it can be read: without salt and password."""

    mechanism: ScramMechanism
    iterations: int


class ScramUpsertion(NamedTuple):
    """A credential to create or to replace."""

    user: str
    mechanism: ScramMechanism
    password: str
    iterations: int = ITERATIONS_MIN


class ScramDeletion(NamedTuple):
    """A credential to delete."""

    user: str
    mechanism: ScramMechanism


def mechanism_of(name: str) -> ScramMechanism:
    """Return the mechanism with a SASL name; ConfigError lists the known ones."""
    for mechanism in ScramMechanism:
        if mechanism.mechanism_name == name:
            return mechanism
    known = ", ".join(mechanism.mechanism_name for mechanism in ScramMechanism)
    raise ConfigError(f"{name!r} is not a known mechanism: choose one of {known}")


def describe_user_scram_credentials(
    brokers: Brokers, users: Sequence[str] | None = None
) -> dict[str, tuple[ScramCredential, ...]]:
    """Return the credentials of these users, or of all, by the name of the user.

    A user without credentials is left out. Credentials of mechanisms that this client does not know
    are left out, too.
    """
    rows = None if users is None else [describing.UserName(name=name) for name in users]
    request = describing.DescribeUserScramCredentialsRequest(users=rows)
    known = {mechanism.code: mechanism for mechanism in ScramMechanism}

    def attempt() -> dict[str, tuple[ScramCredential, ...]]:
        response = brokers.ask_controller(request, describing.DescribeUserScramCredentialsResponse)
        check(response.error_code, response.error_message)
        credentials = {}
        for result in sorted(response.results, key=lambda row: row.user):
            if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            check(result.error_code, result.error_message)
            credentials[result.user] = tuple(
                ScramCredential(known[info.mechanism], info.iterations)
                for info in result.credential_infos
                if info.mechanism in known
            )
        return credentials

    return brokers.retry(attempt)


def alter_user_scram_credentials(
    brokers: Brokers,
    upsertions: Iterable[ScramUpsertion] = (),
    deletions: Iterable[ScramDeletion] = (),
) -> None:
    """Create, replace and delete credentials; the cluster receives only salted passwords.

    ApiError RESOURCE_NOT_FOUND if a credential to delete does not exist, UNACCEPTABLE_CREDENTIAL
    for an empty password or a number of iterations that the cluster rejects, DUPLICATE_RESOURCE for
    two changes of one user: they need a request each. Changes of other users are made.
    """
    request = altering.AlterUserScramCredentialsRequest(
        deletions=[
            altering.ScramCredentialDeletion(name=row.user, mechanism=row.mechanism.code)
            for row in deletions
        ],
        upsertions=[_salted(row) for row in upsertions],
    )

    def attempt() -> None:
        response = brokers.ask_controller(request, altering.AlterUserScramCredentialsResponse)
        for result in response.results:
            check(result.error_code, result.error_message)

    brokers.retry(attempt)


def _salted(upsertion: ScramUpsertion) -> altering.ScramCredentialUpsertion:
    user, mechanism, password, iterations = upsertion
    if not password:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Password must not be empty")
    salt = secrets.token_bytes(_SALT_BYTES)
    return altering.ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism.code,
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations),
    )
