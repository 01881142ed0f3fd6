"""CreateAcls: a broker without an authorizer says so."""

from ottla.base.errors import ErrorCode
from ottla.server.handlers import create_acls
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from tests.handlers.admin import admin_broker


async def test_security_is_disabled() -> None:
    """Each entry has its error."""
    async with admin_broker() as broker:
        response = await create_acls.handle(
            broker.context(3), CreateAclsRequest(creations=[AclCreation(), AclCreation()])
        )
        assert [ErrorCode(result.error_code) for result in response.results] == [
            ErrorCode.SECURITY_DISABLED
        ] * 2
