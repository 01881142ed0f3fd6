"""Errors for serdes that are passed under a name that an operator does not have.

Sources, sinks and groups take `key=` and `value=`; tables and joins take an options object.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

T = TypeVar("T")

_SERDES = ("key", "value")
_OTHER_NAMES = ("serde", "serdes", "key_serde", "value_serde", "key_serializer", "value_serializer")


def refuse_serdes(keywords: Iterable[str], method: str, instead: str) -> None:
    """Raise TypeError if a serde is among the keyword arguments."""
    _refuse((*_SERDES, *_OTHER_NAMES), keywords, method, instead)


def _refuse(names: Iterable[str], keywords: Iterable[str], method: str, instead: str) -> None:
    for keyword in names:
        if keyword in keywords:
            raise TypeError(f"{method} takes no {keyword}=: give serdes with {instead}")


def explains_serdes(kind: type[T]) -> type[T]:
    """Make the methods of a class reject serdes in the wrong place, or under another name, with a
    hint.
    """
    for name, method in list(vars(kind).items()):
        if not isinstance(method, FunctionType):
            continue
        parameters = inspect.signature(method).parameters
        if "materialized" in method.__annotations__ and "key" not in parameters:
            instead = f"{name}(…, materialized=Materialized.with_(key, value))"
            setattr(kind, name, _refusing(method, (*_SERDES, *_OTHER_NAMES), instead))
        elif ("key" in parameters and "value" in parameters) or name == "group_by":
            setattr(kind, name, _refusing(method, _OTHER_NAMES, f"{name}(…, key=…, value=…)"))
    return kind


def _refusing(method: FunctionType, names: Iterable[str], instead: str) -> Callable[..., Any]:
    name = method.__name__

    @wraps(method)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        _refuse(names, keywords, f"{name}()", instead)
        return method(*arguments, **keywords)

    return checked
