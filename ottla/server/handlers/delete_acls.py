"""DeleteAcls (key 31), versions 1-3: delete access control lists (KIP-140).

v2: flexible; v3: resources of type user (KIP-373). Without an authorizer every filter is
SECURITY_DISABLED.

Not done: nothing.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.security.acls import AclBinding
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

API = ApiKey.DELETE_ACLS
MIN_VERSION = 1
MAX_VERSION = 3
PROPERTIES = ApiProperties(is_administrative=True)


async def handle(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Delete the entries that match a filter; the first that matches reports an entry."""
    if context.access is None:
        refusal = DeleteAclsFilterResult(
            error_code=int(ErrorCode.SECURITY_DISABLED),
            error_message="No Authorizer is configured.",
        )
        return DeleteAclsResponse(filter_results=[refusal for _ in request.filters])
    filters = [_filter(wanted) for wanted in request.filters]
    known = [wanted for wanted in filters if not wanted.is_unknown]
    results = iter(await context.access.authorizer.delete(known))
    return DeleteAclsResponse(
        filter_results=[
            _invalid() if wanted.is_unknown else _result(next(results)) for wanted in filters
        ]
    )


def _invalid() -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=int(ErrorCode.INVALID_REQUEST), error_message="Filter contains unknown elements"
    )


def _result(deleted: list[tuple[AclBinding, ApiError | None]]) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_message=None, matching_acls=[_row(binding, error) for binding, error in deleted]
    )


def _filter(wanted: DeleteAclsFilter) -> AclBinding:
    return AclBinding.of_codes(
        (wanted.resource_type_filter, wanted.resource_name_filter, wanted.pattern_type_filter),
        (wanted.principal_filter, wanted.host_filter, wanted.operation, wanted.permission_type),
    )


def _row(binding: AclBinding, error: ApiError | None) -> DeleteAclsMatchingAcl:
    pattern, entry = binding
    return DeleteAclsMatchingAcl(
        error_code=0 if error is None else int(error.code),
        error_message=None if error is None else error.message,
        resource_type=pattern.resource_type,
        resource_name=pattern.name or "",
        pattern_type=pattern.pattern_type,
        principal=entry.principal or "",
        host=entry.host or "",
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
