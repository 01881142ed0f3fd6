"""An operation of the API: a function with its method, path and role.

The parameters of the address are those that the path names; the others are query parameters of GET
and DELETE, or fields of the body.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args, get_origin, get_type_hints

from ottla.base.errors import ConfigError
from ottla.console.accounts.roles import Role
from ottla.console.api.values import from_json, from_text
from ottla.operations.changes import Change

PREFIX = "/api/v1"
CLUSTER_PATH = "/clusters/{cluster}"
# Parameters of functions that the server passes, not the caller.
PASSED = (
    "connection",
    "masking",
    "masks",
    "reader",
    "caller",
    "catalogue",
    "history",
    "timeline",
    "topologies",
    "throttled_moves",
    "alerts",
    "queries",
)
_BODY_METHODS = ("POST", "PUT", "PATCH")


@dataclass(frozen=True)
class Parameter:
    """A parameter of an operation; `location` is "path", "query" or "body"."""

    name: str
    hint: Any
    location: str
    is_required: bool
    default: Any = None


@dataclass(frozen=True)
class Operation:
    """One operation.

    `call` is a function that may have the parameters `PASSED`: `masking` receives the rules that
    apply to the caller, and `reader` their rights; the others are objects of the console.
    `is_change` marks operations that change the cluster, which a read-only console refuses;
    `is_dry_run` those whose POST changes nothing.
    """

    method: str
    path: str
    role: Role
    call: Callable[..., Any]
    tag: str
    is_dry_run: bool = False

    @property
    def name(self) -> str:
        """The operation's id in OpenAPI, and the name of the tool in MCP."""
        return self.call.__name__

    @property
    def full_path(self) -> str:
        """The path below the server's root."""
        return PREFIX + self.path

    @property
    def is_change(self) -> bool:
        """True if the operation changes a cluster."""
        return self.method != "GET" and not self.is_dry_run

    @property
    def has_cluster(self) -> bool:
        """True if the path names a cluster."""
        return self.path.startswith(CLUSTER_PATH)

    @property
    def summary(self) -> str:
        """The first sentence of the function's docstring."""
        return self.description.partition(". ")[0].rstrip(".") + "."

    @property
    def description(self) -> str:
        """The function's docstring in one line."""
        return " ".join((self.call.__doc__ or "").split())

    @property
    def is_list(self) -> bool:
        """True if the result is an array, which is returned in pages."""
        return get_origin(self.result) is list

    @cached_property
    def result(self) -> Any:
        """The type of the result; `Change` for most changes."""
        return get_type_hints(self.call)["return"]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that callers pass."""
        hints = get_type_hints(self.call)
        parameters = []
        for name, parameter in inspect.signature(self.call).parameters.items():
            hint = hints[name]
            if name in PASSED or get_origin(hint) is get_origin(Callable[[], Any]):
                continue
            location = "body" if self.method in _BODY_METHODS else "query"
            if f"{{{name}}}" in self.path:
                location = "path"
            is_required = parameter.default is inspect.Parameter.empty
            default = None if is_required else parameter.default
            parameters.append(Parameter(name, hint, location, is_required, default))
        return tuple(parameters)

    @property
    def body(self) -> tuple[Parameter, ...]:
        """The parameters that are fields of the body."""
        return tuple(row for row in self.parameters if row.location == "body")

    def arguments(
        self, path: Mapping[str, str], query: Mapping[str, str], body: Any
    ) -> dict[str, Any]:
        """Return the arguments of a call over HTTP; ConfigError for a missing, wrong or unknown
        one.
        """
        fields = _fields(body)
        texts = {**query, **{name: text for name, text in path.items() if name != "cluster"}}
        self._refuse_unknown({*texts, *fields})
        arguments: dict[str, Any] = {}
        for row in self.parameters:
            if row.location == "body" and row.name in fields:
                arguments[row.name] = from_json(row.hint, fields[row.name], f"body.{row.name}")
            elif row.location != "body" and row.name in texts:
                arguments[row.name] = from_text(row.hint, texts[row.name], row.name)
            elif row.is_required:
                raise _missing(row)
        return arguments

    def arguments_from_json(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call whose parameters are all fields of one object, as in MCP."""
        self._refuse_unknown(set(values))
        arguments: dict[str, Any] = {}
        for row in self.parameters:
            if row.name in values:
                arguments[row.name] = from_json(row.hint, values[row.name], row.name)
            elif row.is_required:
                raise _missing(row)
        return arguments

    def _refuse_unknown(self, names: set[str]) -> None:
        known = {row.name for row in self.parameters}
        if unknown := sorted(names - known):
            raise ConfigError(
                f"there is no parameter {unknown[0]!r}; there are {', '.join(sorted(known)) or 'none'}"
            )

    def run(self, arguments: Mapping[str, Any], passed: Mapping[str, object]) -> Any:
        """Call the function, with the objects of `PASSED` for which it has parameters.

        Blocks until the cluster responds.
        """
        names = inspect.signature(self.call).parameters
        own = {name: value for name, value in passed.items() if name in names}
        return self.call(**arguments, **own)


def _fields(body: Any) -> Mapping[str, Any]:
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise ConfigError("the body must be a JSON object")
    return body


def _missing(row: Parameter) -> ConfigError:
    return ConfigError(f"the parameter {row.name!r} is missing ({row.location})")


def change_of(result: Any) -> Change | None:
    """Return the change for the audit log, if a result is or has one."""
    if isinstance(result, Change):
        return result
    change = getattr(result, "change", None)
    return change if isinstance(change, Change) else None


def item_type(operation: Operation) -> Any:
    """Return the type of the elements of a list."""
    return get_args(operation.result)[0]
