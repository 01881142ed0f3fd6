"""The users of `kafka-storage format --add-scram`, as in SCRAM-SHA-256=[name=ann,password=secret].

Follows org.apache.kafka.metadata.storage.ScramParser.
"""

import base64
import hashlib
from collections.abc import Iterable

from ottla.base.errors import ConfigError
from ottla.base.rng import Rng
from ottla.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism, credential_of

_SALT_BYTES = 16


def users_of(arguments: Iterable[str], rng: Rng) -> dict[str, dict[str, str]]:
    """Return the settings of each user for the tree: the credential by the name of the mechanism.

    Raises ConfigError, in Apache Kafka's words, for an argument that is not valid.
    """
    users: dict[str, dict[str, str]] = {}
    for argument in arguments:
        mechanism, fields = _split(argument.strip())
        name = fields.pop("name", None)
        if name is None:
            raise ConfigError("You must supply 'name' to add-scram")
        settings = users.setdefault(name, {})
        settings[mechanism.mechanism_name] = _credential(mechanism, fields, rng)
    return users


def _split(argument: str) -> tuple[ScramMechanism, dict[str, str]]:
    name, equals, listed = argument.partition("=")
    if not equals:
        raise ConfigError(f"Failed to find equals sign in SCRAM argument '{argument}'")
    mechanism = next((row for row in ScramMechanism if row.mechanism_name == name), None)
    if mechanism is None:
        raise ConfigError(f"The add-scram mechanism {name} is not supported.")
    for is_there, verb, sign in (
        (listed.startswith("["), "start", "["),
        (listed.endswith("]"), "end", "]"),
    ):
        if not is_there:
            raise ConfigError(f"Expected configuration string to {verb} with {sign}")
    return mechanism, dict(map(_field, listed[1:-1].split(",")))


def _field(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"No equals sign found in SCRAM component: {text}")
    is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return name, value[1:-1] if is_quoted else value


def _credential(mechanism: ScramMechanism, fields: dict[str, str], rng: Rng) -> str:
    written_salt = fields.pop("salt", None)
    salt = None if written_salt is None else _decoded(written_salt, "salt")
    iterations = _iterations(fields.pop("iterations", None))
    password, salted = fields.pop("password", None), fields.pop("saltedpassword", None)
    if password is None and salted is None:
        raise ConfigError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and salt is None:
        raise ConfigError("You must supply 'salt' with 'saltedpassword' to add-scram")
    salted_password = None if salted is None else _decoded(salted, "saltedPassword")
    if fields:
        raise ConfigError(f"Unknown SCRAM configurations: {', '.join(sorted(fields))}")
    _check_iterations(mechanism, iterations)
    salt = rng.random_bytes(_SALT_BYTES) if salt is None else salt
    if password is not None:
        salted_password = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)
    assert salted_password is not None, "one of the two was given"
    return credential_of(mechanism, salt, salted_password, iterations).text()


def _decoded(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ConfigError(f"Failed to decode given {what}: {text}") from None


def _iterations(text: str | None) -> int:
    try:
        return ITERATIONS_MIN if text is None else int(text)
    except ValueError:
        raise ConfigError(f"Failed to parse iterations count: {text}") from None


def _check_iterations(mechanism: ScramMechanism, iterations: int) -> None:
    for is_outside, sign, limit in (
        (iterations < ITERATIONS_MIN, ">=", ITERATIONS_MIN),
        (iterations > ITERATIONS_MAX, "<=", ITERATIONS_MAX),
    ):
        if is_outside:
            raise ConfigError(
                f"The 'iterations' value must be {sign} {limit} for add-scram using "
                f"{mechanism.name}"
            )
