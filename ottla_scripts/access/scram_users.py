"""`kafka-configs` for users with SCRAM credentials (KIP-554)."""

import re
from collections.abc import Mapping, Sequence

from ottla.base.errors import ConfigError
from ottla.client.admin import scram
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported
from ottla.operations.access.changes import alter_credentials
from ottla_scripts.printing import out

MECHANISMS = frozenset(mechanism.mechanism_name for mechanism in scram.ScramMechanism)
_CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)")
_NO_SCRAM = (
    "the cluster stores no SCRAM credentials: its brokers do not serve AlterUserScramCredentials "
    "(Apache Kafka 2.7 or later does); nothing was changed"
)
Iterations = dict[str, dict[str, int]]


def describe(brokers: Brokers, users: Sequence[str]) -> Iterations:
    """Return the iterations by user and mechanism; of all users if none is named.

    Empty if the brokers do not serve the request: then there are no credentials.
    """
    try:
        credentials = scram.describe_user_scram_credentials(brokers, users or None)
    except Unsupported:
        return {}
    return {
        user: {row.mechanism.mechanism_name: row.iterations for row in rows}
        for user, rows in credentials.items()
    }


def print_described(credentials: Iterations) -> None:
    """Print a line for each user."""
    for user, iterations in credentials.items():
        listed = ", ".join(f"{name}=iterations={count}" for name, count in iterations.items())
        out(f"SCRAM credential configs for user-principal '{user}' are {listed}")


def alter(brokers: Brokers, user: str, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    """Set and delete credentials of one user."""
    upsertions = [_upsertion(user, name, text) for name, text in added.items()]
    deletions = [scram.ScramDeletion(user, scram.mechanism_of(name)) for name in deleted]
    try:
        alter_credentials(brokers, upsertions, deletions)
    except Unsupported:
        raise ConfigError(_NO_SCRAM) from None


def _upsertion(user: str, name: str, text: str) -> scram.ScramUpsertion:
    mechanism = scram.mechanism_of(name)
    match = _CREDENTIAL.fullmatch(text)
    if match is None:
        raise ConfigError(f"Invalid credential property {mechanism.name}={text}")
    number, password = match.groups()
    try:
        iterations = scram.ITERATIONS_MIN if number in (None, "-1") else int(number)
    except ValueError:
        raise ConfigError(f'For input string: "{number}"') from None
    if iterations < scram.ITERATIONS_MIN:
        raise ConfigError(
            f"Iterations {iterations} is less than the minimum {scram.ITERATIONS_MIN} required for "
            f"{name}"
        )
    return scram.ScramUpsertion(user, mechanism, password, iterations)
