"""Errors of authorization: who needs which operation on what, and the command that allows it.

A broker answers only that an operation is not allowed. The operation is that of the request, or the
one that the whole command needs: Read, Write, Delete and Alter include Describe.
"""

import shlex
from collections.abc import Mapping
from typing import Any

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.brokers import Brokers
from ottla.client.errors import RecordsDenied
from ottla.wire.fields import Message

_TOPIC, _GROUP, _ID, _CLUSTER = "--topic", "--group", "--transactional-id", "--cluster"
_OPTIONS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _TOPIC,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _GROUP,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _ID,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _CLUSTER,
}
_NOUNS = {_TOPIC: "topic", _GROUP: "group", _ID: "transactional id", _CLUSTER: "the cluster"}
_DESCRIBE = "Describe"
# The operations that brokers check for requests, if it is not Describe.
_OF_REQUESTS = {
    "AddRaftVoter": "Alter",
    "AlterClientQuotas": "AlterConfigs",
    "AlterPartitionReassignments": "Alter",
    "AlterReplicaLogDirs": "Alter",
    "CreateAcls": "Alter",
    "CreatePartitions": "Alter",
    "CreateTopics": "Create",
    "DeleteAcls": "Alter",
    "DeleteGroups": "Delete",
    "DeleteRecords": "Delete",
    "DeleteTopics": "Delete",
    "DescribeClientQuotas": "DescribeConfigs",
    "DescribeConfigs": "DescribeConfigs",
    "DescribeProducers": "Read",
    "ElectLeaders": "Alter",
    "Fetch": "Read",
    "IncrementalAlterConfigs": "AlterConfigs",
    "InitProducerId": "Write",
    "LeaveGroup": "Read",
    "ListConfigResources": "DescribeConfigs",
    "OffsetCommit": "Read",
    "OffsetDelete": "Delete",
    "Produce": "Write",
    "RemoveRaftVoter": "Alter",
    "UpdateFeatures": "Alter",
    "WriteTxnMarkers": "Alter",
}
# The operations that verbs need and that include Describe; librdkafka sends requests of its own.
_OF_VERBS = {
    (_TOPIC, "consume"): "Read",
    (_TOPIC, "topic delete"): "Delete",
    (_TOPIC, "topic search"): "Read",
    (_TOPIC, "topic copy"): "Read",
    (_TOPIC, "topic trim"): "Delete",
    (_TOPIC, "topic load"): "Write",
    (_TOPIC, "topic export"): "Read",
    (_TOPIC, "transaction producers"): "Read",
    (_TOPIC, "replica verify"): "Read",
    (_TOPIC, "perf consume"): "Read",
    (_TOPIC, "perf latency"): "Write",
    (_TOPIC, "perf verifiable-consume"): "Read",
    (_GROUP, "consume"): "Read",
    (_GROUP, "group reset"): "Read",
    (_GROUP, "group delete"): "Delete",
    (_GROUP, "perf consume"): "Read",
    (_GROUP, "perf verifiable-consume"): "Read",
    (_ID, "transaction abort"): "Write",
    (_CLUSTER, "acl add"): "Alter",
    (_CLUSTER, "topic copy"): "IdempotentWrite",
    (_CLUSTER, "acl remove"): "Alter",
}
# The fields of requests and the options of command lines that name resources.
_FIELDS = {
    _TOPIC: ("topics", "topic_names", "resources"),
    _GROUP: ("groups", "groups_names", "group_ids", "group_id", "key"),
    _ID: ("transactional_ids", "transactional_id", "key"),
}
_NAMES = ("name", "resource_name", "group_id")
_PARAMETERS = {_TOPIC: ("topic", "topics"), _GROUP: ("group",), _ID: ("transactional_id",)}
_NAMES_MAX = 3
# Added to the sentence about a request that brokers may refuse for another reason.
_NOTES = {
    "WriteTxnMarkers": (
        ". Brokers of Ottla that have no authorizer refuse it to every client: set "
        "authorizer.class.name"
    ),
}


def denied(error: ApiError, request: Message | None, brokers: Brokers) -> ApiError:
    """Return the error with the missing right; itself if it is not known.

    `request` is the last one that was sent to the brokers by this command.
    """
    if isinstance(error, RecordsDenied):
        return _sentence(error, _TOPIC, [error.topic], error.operation, brokers)
    option = _OPTIONS.get(error.code)
    context = click.get_current_context()
    if option is None:
        return error
    operation = _operation(option, request, context)
    if not operation:
        return error
    names = _names_in(request, option) or _names_of(context.params, option)
    quoted = [name for name in names if repr(name) in str(error)] or names
    chosen = quoted if len(quoted) <= _NAMES_MAX else []
    sentence = _sentence(error, option, chosen, operation, brokers)
    note = _NOTES.get(_name(request), "")
    return ApiError(sentence.code, f"{sentence.message}{note}")


def _name(request: Message | None) -> str:
    return "" if request is None else type(request).__name__.removesuffix("Request")


def _sentence(
    error: ApiError, option: str, names: list[str], operation: str, brokers: Brokers
) -> ApiError:
    words = [f"{option} {shlex.quote(name)}" for name in names] or [
        option if option == _CLUSTER else f"{option} NAME"
    ]
    resource = f"{_NOUNS[option]} {', '.join(map(repr, names))}".rstrip()
    user = _user(brokers)
    return ApiError(
        error.code,
        f"{resource[0].upper()}{resource[1:]}: {user or 'this user'} is denied the operation "
        f"{operation}: ask an administrator for `ottla acl add {' '.join(words)} --operation "
        f"{operation} --allow-principal {shlex.quote(user or 'User:NAME')}`",
    )


def _operation(option: str, request: Message | None, context: click.Context) -> str:
    """Return the operation that is needed; "" if it is not known."""
    verb = context.command_path.partition(" ")[2]
    of_verb = _OF_VERBS.get((option, verb), "")
    name = _name(request)
    if name in ("", "ApiVersions"):
        return of_verb
    return _OF_REQUESTS.get(name) or of_verb or _DESCRIBE


def _names_in(request: Message | None, option: str) -> list[str]:
    """Return the names of resources in a request."""
    names: list[str] = []
    for field in _FIELDS.get(option, ()):
        value = getattr(request, field, None) or []
        for row in [value] if isinstance(value, str) else value:
            found = [getattr(row, attribute, None) for attribute in _NAMES]
            names += [row] if isinstance(row, str) else [name for name in found if name]
    return list(dict.fromkeys(names))


def _names_of(parameters: Mapping[str, Any], option: str) -> list[str]:
    """Return the names of resources on the command line."""
    values = (parameters.get(name) or () for name in _PARAMETERS.get(option, ()))
    return [
        name
        for value in values
        for name in ([value] if isinstance(value, str) else map(str, value))
    ]


def _user(brokers: Brokers) -> str:
    """Return the principal of the connections; "" if only the broker knows it."""
    if brokers.security is None:
        return "User:ANONYMOUS"
    credentials = brokers.security.credentials
    return "" if credentials is None or credentials.is_token else f"User:{credentials.username}"
