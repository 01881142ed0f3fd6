"""DescribeUserScramCredentials: mechanisms and iterations, never keys."""

from ottla.base.errors import ErrorCode
from ottla.cluster.znodes import ConfigNode
from ottla.controller.planning.requests import Alteration, ConfigChange, ConfigRequest
from ottla.security.scram import ScramMechanism, credential_of
from ottla.server.handlers import describe_user_scram_credentials
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.handlers.admin import AdminBroker, admin_broker


async def store(broker: AdminBroker, path: str, **settings: str) -> None:
    """Write settings below /config/users."""
    changes = tuple(
        ConfigChange(name.replace("_", "-"), Alteration.SET, text)
        for name, text in settings.items()
    )
    await broker.controller.alter_configs([ConfigRequest(ConfigNode.USERS, path, changes)])
    await broker.configs.refresh(ConfigNode.USERS, path)


def credential(iterations: int) -> str:
    """Return the text of a credential."""
    return credential_of(ScramMechanism.SCRAM_SHA_256, b"salt", b"salted", iterations).text()


def describe(broker: AdminBroker, *users: str) -> dict[str, ErrorCode | dict[int, int]]:
    """Return, by user, the error or the iterations by mechanism."""
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users])
    response = describe_user_scram_credentials.handle(broker.context(0), request)
    assert response.error_code == ErrorCode.NONE
    return {
        result.user: ErrorCode(result.error_code)
        if result.error_code
        else {info.mechanism: info.iterations for info in result.credential_infos}
        for result in response.results
    }


async def test_users_with_credentials_are_described() -> None:
    """Users with quotas only, clients of users and the default user are left out."""
    async with admin_broker() as broker:
        await store(broker, "a%20nn", SCRAM_SHA_256=credential(4096))
        await store(broker, "bob", SCRAM_SHA_256=credential(4097), SCRAM_SHA_512=credential(8192))
        await store(broker, "carl", producer_byte_rate="1")
        await store(broker, "<default>", producer_byte_rate="1")
        await store(broker, "bob/clients/c", producer_byte_rate="1")
        everybody = {"a nn": {1: 4096}, "bob": {1: 4097, 2: 8192}}
        assert describe(broker) == everybody
        request = DescribeUserScramCredentialsRequest(users=None)
        response = describe_user_scram_credentials.handle(broker.context(0), request)
        assert [result.user for result in response.results] == list(everybody)


async def test_users_that_are_named_are_described() -> None:
    """A user without credentials is RESOURCE_NOT_FOUND, one named twice DUPLICATE_RESOURCE."""
    async with admin_broker() as broker:
        await store(broker, "ann", SCRAM_SHA_256=credential(4096))
        await store(broker, "carl", producer_byte_rate="1")
        assert describe(broker, "ann", "carl", "bob", "bob") == {
            "ann": {1: 4096},
            "carl": ErrorCode.RESOURCE_NOT_FOUND,
            "bob": ErrorCode.DUPLICATE_RESOURCE,
        }


async def test_damaged_credential_is_an_error_of_its_user() -> None:
    """Other users are described."""
    async with admin_broker() as broker:
        await store(broker, "ann", SCRAM_SHA_256=credential(4096))
        for name, text in (("bob", "nothing"), ("carl", "salt=AA==,iterations=1")):
            await store(broker, name, SCRAM_SHA_256=text)
        assert describe(broker) == {
            "ann": {1: 4096},
            "bob": ErrorCode.UNKNOWN_SERVER_ERROR,
            "carl": ErrorCode.UNKNOWN_SERVER_ERROR,
        }
