"""DescribeDelegationToken: refused, because no listener authenticates its clients."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import describe_delegation_token
from ottla.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from tests.handlers.logs import LogsBroker

VERSIONS = range(describe_delegation_token.MIN_VERSION, describe_delegation_token.MAX_VERSION + 1)
ANNA = DescribeDelegationTokenOwner(principal_type="User", principal_name="anna")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("owners", [None, [], [ANNA]])
async def test_tokens_are_not_described_on_a_plaintext_listener(
    broker: LogsBroker, version: int, owners: list[DescribeDelegationTokenOwner] | None
) -> None:
    """The error is Kafka's for all owners, no owners, and one owner."""
    request = DescribeDelegationTokenRequest(owners=owners)
    response = await broker.ask(describe_delegation_token, request, version)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert response.tokens == []
