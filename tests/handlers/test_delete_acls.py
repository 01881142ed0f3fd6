"""DeleteAcls: a broker without an authorizer says so."""

from ottla.base.errors import ErrorCode
from ottla.server.handlers import delete_acls
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tests.handlers.admin import admin_broker


async def test_security_is_disabled() -> None:
    """Each filter has its error."""
    async with admin_broker() as broker:
        response = await delete_acls.handle(
            broker.context(3), DeleteAclsRequest(filters=[DeleteAclsFilter(), DeleteAclsFilter()])
        )
        assert [ErrorCode(result.error_code) for result in response.filter_results] == [
            ErrorCode.SECURITY_DISABLED
        ] * 2
