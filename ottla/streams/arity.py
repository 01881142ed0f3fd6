"""Users' functions take the value, or the key and the value: told apart once, when a topology is built."""

import inspect
from collections.abc import Callable
from typing import Any

from ottla.streams.columns import Column, Evaluated, is_sparks
from ottla.streams.errors import TopologyError
from ottla.streams.pyspark_columns import of_pyspark

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _accepts(function: Callable[..., Any], without_key: int) -> tuple[int, int | None]:
    """Return how many positional arguments a function needs and takes (None: any number)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        # Builtins that do not tell, such as int and max, take the values.
        return without_key, without_key
    places = [each for each in parameters if each.kind in _POSITIONAL]
    needed = sum(each.default is inspect.Parameter.empty for each in places)
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return needed, None
    return needed, len(places)


# The one method of each of Kafka's functional interfaces.
_METHODS = ("apply", "test", "extract", "partitions", "transform")


def _check_function(function: Any, what: str) -> None:
    """TypeError for an object that is no function: it says which of its methods is one."""
    if callable(function):
        return
    method = next((each for each in _METHODS if callable(getattr(function, each, None))), None)
    hint = f"; hand over its method: {type(function).__name__}().{method}" if method else ""
    raise TypeError(f"{what} is a function, not {function!r}{hint}")


def with_context(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Return `function` as one of key, value and context; it takes the value, key and value, or all three."""
    _check_function(function, what)
    needed, taken = _accepts(function, 1)
    if needed == 3:
        return function
    if needed > 3 or taken == 0:
        raise TopologyError(f"{what} takes the value, key and value, or key, value and context")
    plain = with_key(function, 2, what)

    def without_context(key: Any, value: Any, _context: Any) -> Any:
        return plain(key, value)

    # Descriptions of topologies name it.
    without_context.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
    return without_context


def check_arity(function: Any, count: int, what: str) -> None:
    """TypeError for what is no function, TopologyError for one of another number of arguments."""
    if not callable(function):
        example = "lambda: …" if count == 0 else "lambda one, two: …"
        raise TypeError(f"{what} is a function, {example}, not {function!r}")
    needed, taken = _accepts(function, count)
    if needed > count or (taken is not None and taken < count):
        raise TopologyError(f"{what} takes {count or 'no'} arguments, this one takes {needed}")


def takes_two(function: Callable[..., Any], what: str) -> bool:
    """Tell whether a function has to be given a second argument."""
    _check_function(function, what)
    return _accepts(function, 1)[0] == 2


def with_key(function: Callable[..., Any] | Column, count: int, what: str) -> Callable[..., Any]:
    """Return `function` as one that takes `count` arguments, the key first.

    A function that takes one argument fewer gets all but the key; a Column, ours or pyspark's, is evaluated. TopologyError for any
    other.
    """
    if isinstance(function, Column) or is_sparks(function):
        if count != 2:
            raise TopologyError(f"{what} is a function: a Column sees one record's key and value")
        return Evaluated(function) if isinstance(function, Column) else of_pyspark(function)
    _check_function(function, what)
    needed, taken = _accepts(function, count - 1)
    if needed == count or (taken is None and needed < count):
        return function
    if needed <= count - 1 and (taken is None or taken >= count - 1):
        if count == 2:
            # Called for every record: this one is called faster.
            return lambda _key, value: function(value)
        return lambda _key, *values: function(*values)
    raise TopologyError(
        f"{what} takes {count - 1} argument{'s' if count > 2 else ''}, or {count} with the key first; "
        f"{getattr(function, '__name__', function)!r} takes {needed}"
    )
