"""The checks of APIs about the cluster, and of configurations.

Where a response has no error of its own, each of its parts gets the error.
"""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from ottla.server.authorization.access import Access
from ottla.server.authorization.guarding import Check, Verdict
from ottla.wire.messages import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    create_acls,
    delete_acls,
    describe_client_quotas,
    describe_configs,
    describe_log_dirs,
    elect_leaders,
    incremental_alter_configs,
)
from ottla.wire.schema import first_version

_ERROR = ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_FAILED = int(_ERROR.code)
_FIRST_VERSION_WITH_ERROR = first_version(describe_log_dirs.DescribeLogDirsResponse, "error_code")
_FIRST_ELECTION_WITH_ERROR = first_version(elect_leaders.ElectLeadersResponse, "error_code")
_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
# The resource that a type of configuration belongs to, and the error of a refusal.
_CONFIGURED = {
    _TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    _GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    _BROKER: (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    _BROKER_LOGGER: (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    _CLIENT_METRICS: (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
}


def cluster(*operations: AclOperation, refuse: Callable[[Any], Any] | None = None) -> Check:
    """Return the check of an API that needs one of the operations on the cluster.

    `refuse` returns the response of a refused request if that has no error of its own.
    """

    *others, last = operations

    def check(access: Access, request: Any) -> Verdict:
        if any(access.has_cluster_right(operation) for operation in others):
            return None
        if access.may_cluster(last):
            return None
        if refuse is None:
            raise _ERROR
        return refuse(request)

    return check


def refuse_acls(request: create_acls.CreateAclsRequest) -> create_acls.CreateAclsResponse:
    """Refuse each entry."""
    result = create_acls.AclCreationResult(error_code=_FAILED, error_message=_ERROR.message)
    return create_acls.CreateAclsResponse(results=[result] * len(request.creations))


def refuse_filters(request: delete_acls.DeleteAclsRequest) -> delete_acls.DeleteAclsResponse:
    """Refuse each filter."""
    result = delete_acls.DeleteAclsFilterResult(error_code=_FAILED, error_message=_ERROR.message)
    return delete_acls.DeleteAclsResponse(filter_results=[result] * len(request.filters))


def refuse_quotas(
    request: alter_client_quotas.AlterClientQuotasRequest,
) -> alter_client_quotas.AlterClientQuotasResponse:
    """Refuse each entity."""
    return alter_client_quotas.AlterClientQuotasResponse(
        entries=[
            alter_client_quotas.AlterClientQuotasResponseEntryData(
                error_code=_FAILED, error_message=_ERROR.message, entity=entry.entity
            )
            for entry in request.entries
        ]
    )


def refuse_credentials(
    request: alter_user_scram_credentials.AlterUserScramCredentialsRequest,
) -> alter_user_scram_credentials.AlterUserScramCredentialsResponse:
    """Refuse each user once."""
    rows: list[Any] = [*request.deletions, *request.upsertions]
    return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
        results=[
            alter_user_scram_credentials.AlterUserScramCredentialsResult(
                user=name, error_code=_FAILED, error_message=_ERROR.message
            )
            for name in dict.fromkeys(row.name for row in rows)
        ]
    )


def refuse_moves(
    request: alter_replica_log_dirs.AlterReplicaLogDirsRequest,
) -> alter_replica_log_dirs.AlterReplicaLogDirsResponse:
    """Refuse each partition."""
    rows = alter_replica_log_dirs
    return rows.AlterReplicaLogDirsResponse(
        results=[
            rows.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    rows.AlterReplicaLogDirPartitionResult(
                        partition_index=number, error_code=_FAILED
                    )
                    for number in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def refuse_reassignments(
    request: alter_partition_reassignments.AlterPartitionReassignmentsRequest,
) -> alter_partition_reassignments.AlterPartitionReassignmentsResponse:
    """Refuse each partition, and the whole request."""
    rows = alter_partition_reassignments
    return rows.AlterPartitionReassignmentsResponse(
        error_code=_FAILED,
        error_message=_ERROR.message,
        responses=[
            rows.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    rows.ReassignablePartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=_FAILED,
                        error_message=_ERROR.message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def refuse_quota_filter(
    _: describe_client_quotas.DescribeClientQuotasRequest,
) -> describe_client_quotas.DescribeClientQuotasResponse:
    """Refuse the whole request."""
    return describe_client_quotas.DescribeClientQuotasResponse(
        error_code=_FAILED, error_message=_ERROR.message, entries=None
    )


def check_elections(access: Access, request: elect_leaders.ElectLeadersRequest) -> Verdict:
    """ALTER of the cluster; the error is at each partition that is named, too."""
    if access.may_cluster(AclOperation.ALTER):
        return None
    return elect_leaders.ElectLeadersResponse(
        error_code=_FAILED if access.version >= _FIRST_ELECTION_WITH_ERROR else 0,
        replica_election_results=[
            elect_leaders.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    elect_leaders.PartitionResult(
                        partition_id=number, error_code=_FAILED, error_message=_ERROR.message
                    )
                    for number in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def check_log_dirs(access: Access, _: describe_log_dirs.DescribeLogDirsRequest) -> Verdict:
    """DESCRIBE of the cluster; old versions return no directory."""
    if access.may_cluster(AclOperation.DESCRIBE):
        return None
    has_error = access.version >= _FIRST_VERSION_WITH_ERROR
    return describe_log_dirs.DescribeLogDirsResponse(error_code=_FAILED if has_error else 0)


def _refusal(access: Access, operation: AclOperation, resource: Any) -> ApiError | None:
    """Return the error of a configuration that the sender may not see or change."""
    if resource.resource_type not in _CONFIGURED:
        # The handler refuses the type.
        return None
    kind, code = _CONFIGURED[resource.resource_type]
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else resource.resource_name
    return None if access.may(operation, kind, name) else ApiError(code)


def configs(operation: AclOperation, row: type[Any], results: str) -> Check:
    """Return the check of an API of configurations: of each topic and group, or of the cluster.

    `row` is the part of the response for a configuration, in its field `results`.
    """

    def check(access: Access, request: Any) -> Verdict:
        refused: list[Any] = []
        allowed: list[Any] = []
        for resource in request.resources:
            error = _refusal(access, operation, resource)
            if error is None:
                allowed.append(resource)
                continue
            refused.append(
                row(
                    error_code=int(error.code),
                    error_message=error.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
        request.resources = allowed

        def complete(response: Any) -> Any:
            getattr(response, results).extend(refused)
            return response

        return complete if refused else None

    return check


check_describe_configs = configs(
    AclOperation.DESCRIBE_CONFIGS, describe_configs.DescribeConfigsResult, "results"
)
check_alter_configs = configs(
    AclOperation.ALTER_CONFIGS, alter_configs.AlterConfigsResourceResponse, "responses"
)
check_incremental_alter_configs = configs(
    AclOperation.ALTER_CONFIGS, incremental_alter_configs.AlterConfigsResourceResponse, "responses"
)
