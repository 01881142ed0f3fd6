"""Errors for `key=` and `value=` arguments of operators that take serdes in an options object."""

from collections.abc import Callable, Iterable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

T = TypeVar("T")


def refuse_serdes(keywords: Iterable[str], method: str, instead: str) -> None:
    """Raise TypeError if `key` or `value` is among the keyword arguments."""
    for keyword in ("key", "value"):
        if keyword in keywords:
            raise TypeError(f"{method} takes no {keyword}=: give serdes with {instead}")


def keeps_tables(kind: type[T]) -> type[T]:
    """Make the methods of a class that take `materialized` reject `key=` and `value=` with a hint."""
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and "materialized" in method.__annotations__:
            setattr(kind, name, _refusing_serdes(method))
    return kind


def _refusing_serdes(method: FunctionType) -> Callable[..., Any]:
    name = method.__name__
    instead = f"{name}(…, materialized=Materialized.with_(key, value))"

    @wraps(method)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        refuse_serdes(keywords, f"{name}()", instead)
        return method(*arguments, **keywords)

    return checked
