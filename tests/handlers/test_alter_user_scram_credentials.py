"""AlterUserScramCredentials: credentials in the tree, and invalid ones."""

import base64
import hashlib

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.znodes import ConfigNode
from ottla.server.handlers import alter_user_scram_credentials
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.handlers.admin import AdminBroker, admin_broker

# The example of RFC 7677: user "user", password "pencil".
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
EXAMPLE = (
    "salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
    "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,iterations=4096"
)


def upsertion(
    name: str = "user", *, mechanism: int = 1, iterations: int = 4096
) -> ScramCredentialUpsertion:
    """Return the credential of the example."""
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, iterations if iterations > 0 else 1)
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=SALT, salted_password=salted
    )


async def alter(
    broker: AdminBroker,
    *upsertions: ScramCredentialUpsertion,
    deletions: tuple[tuple[str, int], ...] = (),
) -> list[tuple[str, ErrorCode]]:
    """Send one request; return the user and code of each result."""
    request = AlterUserScramCredentialsRequest(
        deletions=[
            ScramCredentialDeletion(name=name, mechanism=mechanism) for name, mechanism in deletions
        ],
        upsertions=list(upsertions),
    )
    response = await alter_user_scram_credentials.handle(broker.context(0), request)
    return [(result.user, ErrorCode(result.error_code)) for result in response.results]


async def stored(broker: AdminBroker, user: str) -> dict[str, str]:
    """Return the settings of a user in the tree."""
    path = ConfigNode.path(ConfigNode.USERS, ConfigNode.sanitize(user))
    data, _ = await broker.world.tree.session().get(path)
    return ConfigNode.decode(path, data)


async def test_tree_has_the_keys_of_kafka_and_not_the_password() -> None:
    """The keys come from the example in RFC 7677, in the text of ScramCredentialUtils."""
    async with admin_broker() as broker:
        assert await alter(broker, upsertion()) == [("user", ErrorCode.NONE)]
        assert await stored(broker, "user") == {"SCRAM-SHA-256": EXAMPLE}


async def test_mechanisms_and_quotas_of_a_user_are_independent() -> None:
    """A deletion removes one mechanism; the other one and quotas stay."""
    async with admin_broker() as broker:
        await alter(broker, upsertion())
        await alter(broker, upsertion(mechanism=2))
        assert set(await stored(broker, "user")) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
        assert await alter(broker, deletions=(("user", 1),)) == [("user", ErrorCode.NONE)]
        assert set(await stored(broker, "user")) == {"SCRAM-SHA-512"}


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (upsertion(name=""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
async def test_invalid_credential_changes_nothing(
    row: ScramCredentialUpsertion, code: ErrorCode
) -> None:
    """The entry has an error, and a valid one beside it is written."""
    async with admin_broker() as broker:
        assert await alter(broker, row, upsertion("other")) == [
            ("other", ErrorCode.NONE),
            (row.name, code),
        ]
        assert set(await stored(broker, "other")) == {"SCRAM-SHA-256"}
        users = await broker.world.tree.session().children(ConfigNode.type_path(ConfigNode.USERS))
        assert users == ["other"]


async def test_deletion_of_a_credential_that_does_not_exist_is_an_error() -> None:
    """Neither the user nor the mechanism need exist."""
    async with admin_broker() as broker:
        await alter(broker, upsertion())
        assert await alter(broker, deletions=(("user", 2), ("unknown", 1))) == [
            ("user", ErrorCode.RESOURCE_NOT_FOUND),
            ("unknown", ErrorCode.RESOURCE_NOT_FOUND),
        ]


async def test_user_is_changed_once_in_a_request() -> None:
    """A second and a third change are DUPLICATE_RESOURCE, and the first is not made either."""
    async with admin_broker() as broker:
        await alter(broker, upsertion())
        rows = (upsertion(mechanism=2), upsertion(iterations=8192))
        assert await alter(broker, *rows, deletions=(("user", 1),)) == [
            ("user", ErrorCode.DUPLICATE_RESOURCE)
        ]
        assert await stored(broker, "user") == {"SCRAM-SHA-256": EXAMPLE}
