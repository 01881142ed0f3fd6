"""DescribeAcls: a broker without an authorizer says so."""

from ottla.base.errors import ErrorCode
from ottla.server.handlers import describe_acls
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from tests.handlers.admin import admin_broker


async def test_security_is_disabled() -> None:
    """An empty list would mean that there is an authorizer."""
    async with admin_broker() as broker:
        response = describe_acls.handle(broker.context(3), DescribeAclsRequest())
        assert response.error_code == ErrorCode.SECURITY_DISABLED
        assert response.resources == []
