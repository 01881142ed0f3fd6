"""The options that name resources, principals and operations, as in kafka-acls."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin.acls import AclBinding, AclOperation, PatternType
from ottla.client.errors import Unsupported
from ottla.operations.access.entries import check_roles, row_of
from ottla.operations.access.patterns import RESOURCE_TYPES, AclRequest
from ottla.tools import options

COLUMNS = ("resource_type", "name", "pattern_type", "principal", "permission_type", "operation", "host")  # fmt: skip
_OPERATIONS = [
    "".join(word.capitalize() for word in operation.name.split("_"))
    for operation in AclOperation
    if operation >= AclOperation.ALL
]
_NO_AUTHORIZER = (
    "the cluster has no access control lists: its brokers need an authorizer (authorizer.class.name, "
    "docs/security.md)"
)
_MANY = {"multiple": True, "metavar": "NAME"}
_PRINCIPAL = {"multiple": True, "metavar": "TYPE:NAME"}
_RESOURCES = (
    click.option("--topic", help="A topic; * is every topic; may be repeated.", shell_complete=options.complete_topic, **_MANY),  # type: ignore[arg-type]
    click.option("--group", help="A consumer group; * is every group; may be repeated.", shell_complete=options.complete_group, **_MANY),  # type: ignore[arg-type]
    click.option("--cluster", is_flag=True, help="The cluster."),
    click.option("--transactional-id", help="A transactional id; may be repeated.", **_MANY),  # type: ignore[arg-type]
    click.option("--delegation-token", help="A delegation token; may be repeated.", **_MANY),  # type: ignore[arg-type]
    click.option("--user-principal", help="A user, for operations on tokens; may be repeated.", **_MANY),  # type: ignore[arg-type]
)  # fmt: skip
_ENTRIES = (
    click.option("--allow-principal", help="A principal to allow, as in User:anna; may be repeated.", **_PRINCIPAL),  # type: ignore[arg-type]
    click.option("--deny-principal", help="A principal to deny; may be repeated.", **_PRINCIPAL),  # type: ignore[arg-type]
    click.option("--allow-host", multiple=True, metavar="ADDRESS", help="A host of the allowed principals.  [default: all]"),
    click.option("--deny-host", multiple=True, metavar="ADDRESS", help="A host of the denied principals.  [default: all]"),
    click.option("--operation", multiple=True, type=click.Choice(_OPERATIONS, case_sensitive=False), help="An operation; may be repeated.  [default: All]"),
    click.option("--producer", is_flag=True, help="The operations that a producer needs."),
    click.option("--consumer", is_flag=True, help="The operations that a consumer needs."),
    click.option("--idempotent", is_flag=True, help="With --producer: the operation that idempotence needs."),
)  # fmt: skip
Function = Callable[..., Any]


def resources(*pattern_types: str) -> Callable[[Function], Function]:
    """Add the options that name resources to a command, with these types of patterns."""
    pattern = click.option(
        "--pattern-type",
        type=click.Choice(pattern_types),
        default=pattern_types[0],
        show_default=True,
        help="How names are compared.",
    )

    def add(function: Function) -> Function:
        return _with((*_RESOURCES, pattern), function)

    return add


def entries(function: Function) -> Function:
    """Add the options that name principals and operations to a command."""
    return _with(_ENTRIES, function)


def _with(chosen: Sequence[Callable[[Function], Function]], function: Function) -> Function:
    for option in reversed(chosen):
        function = option(function)
    return function


def request_of(option_values: dict[str, Any]) -> AclRequest:
    """Return what the options name; UsageError if they contradict each other."""
    values: dict[str, Any] = dict.fromkeys(("producer", "consumer", "idempotent"), False)
    values |= {"operation": (), **option_values}
    if values["producer"] or values["consumer"]:
        for name in ("operation", "deny_principal", "deny_host"):
            if values[name]:
                word = name.replace("_", "-")
                raise click.UsageError(
                    f"--{word} cannot be combined with --producer or --consumer."
                )
    request = AclRequest(
        resources=tuple(
            (resource_type, name)
            for option, resource_type in RESOURCE_TYPES.items()
            for name in values[option.replace("-", "_")]
        ),
        pattern_type=PatternType[values["pattern_type"].upper()],
        is_for_cluster=values["cluster"],
        operations=tuple(values["operation"]),
        allow_principals=values.get("allow_principal", ()),
        deny_principals=values.get("deny_principal", ()),
        allow_hosts=values.get("allow_host", ()),
        deny_hosts=values.get("deny_host", ()),
        is_for_producer=values["producer"],
        is_for_consumer=values["consumer"],
        is_idempotent=values["idempotent"],
    )
    with usage_errors():
        check_roles(request)
    return request


@contextmanager
def usage_errors() -> Iterator[None]:
    """Convert the errors of a request to usage errors of the command line."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def authorized() -> Iterator[None]:
    """Convert the errors of brokers without an authorizer to one sentence."""
    try:
        yield
    except Unsupported as error:
        raise OttlaError(_NO_AUTHORIZER) from error
    except ApiError as error:
        if error.code is not ErrorCode.SECURITY_DISABLED:
            raise
        raise OttlaError(_NO_AUTHORIZER) from error


def rows_of(bindings: Sequence[AclBinding], **facts: Any) -> list[dict[str, Any]]:
    """Return the rows of bindings."""
    return [{**row_of(binding), **facts} for binding in bindings]
