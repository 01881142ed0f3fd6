"""Users' functions take the value, or the key and the value; the number of arguments decides.

It is checked once, when the topology is built.
"""

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from ottla.streams.expressions.columns import (
    Column,
    Evaluated,
    OfSpark,
    Pair,
    PysparkColumn,
    is_sparks,
)
from ottla.streams.expressions.pyspark_columns import of_pyspark
from ottla.streams.model.errors import TopologyError

AnyFunction = Callable[..., Any] | Column | PysparkColumn
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _accepts(function: Callable[..., Any], without_key: int) -> tuple[int, int | None]:
    """Return the minimum and maximum number of positional arguments of a function (None: no
    maximum).
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        # Builtins without a signature, such as int and max, take the values.
        return without_key, without_key
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    needed = sum(parameter.default is inspect.Parameter.empty for parameter in positional)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return needed, None
    return needed, len(positional)


def refuse_async(function: Any, subject: str) -> None:
    """Raise TypeError for an async function: an engine calls it for each record, without a loop."""
    for called in (function, getattr(type(function), "__call__", None)):  # noqa: B004
        if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
            name = getattr(function, "__name__", type(function).__name__)
            raise TypeError(
                f"{subject} cannot be the async function {name!r}, because its result would never be "
                "awaited: write it with def"
            )


def check_method(owner: type, name: str, parameters: Sequence[str], advice: str = "") -> None:
    """Raise TopologyError if a method of a user's class does not take these parameters, TypeError
    if it is async; `advice` follows the correct form.
    """
    method = inspect.getattr_static(owner, name, None)
    if method is None:
        return
    function = getattr(owner, name)
    refuse_async(function, f"{owner.__name__}.{name}")
    # The signature of a method of instances has `self`.
    count = len(parameters) + isinstance(method, FunctionType)
    needed, most = _accepts(function, count)
    if needed > count or (most is not None and most < count):
        taken = ", ".join(inspect.signature(function).parameters)
        form = ", ".join(("self", *parameters))
        raise TopologyError(f"{owner.__name__} has {name}({taken}): write {name}({form}){advice}")


# The methods of Kafka's functional interfaces.
_METHODS = ("apply", "test", "extract", "partitions", "transform")


def _checked(function: Any, subject: str) -> Callable[..., Any]:
    """Return a function. Raises TypeError for other objects, with the method to pass if there is
    one.
    """
    if callable(function):
        refuse_async(function, subject)
        return function  # type: ignore[no-any-return]
    method = next((name for name in _METHODS if callable(getattr(function, name, None))), None)
    hint = f"; pass its method: {type(function).__name__}().{method}" if method else ""
    raise TypeError(f"{subject} is a function, not {function!r}{hint}")


def with_context(function: AnyFunction, subject: str) -> Callable[..., Any]:
    """Wrap a function of the value, of key and value, or of both and the context, to take all
    three.
    """
    called = evaluated(function) or _checked(function, subject)
    needed, most = _accepts(called, 1)
    if needed == 3:
        return called
    if needed > 3 or most == 0:
        raise TopologyError(f"{subject} takes the value, key and value, or key, value and context")
    plain = with_key(called, 2, subject)

    def without_context(key: Any, value: Any, _context: Any) -> Any:
        return plain(key, value)

    # Descriptions of topologies contain its name.
    without_context.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
    return without_context


def check_arity(function: Any, count: int, subject: str) -> None:
    """Raise TypeError for an object that is not callable, TopologyError for another arity."""
    if not callable(function):
        example = "lambda: …" if count == 0 else "lambda one, two: …"
        raise TypeError(f"{subject} is a function, {example}, not {function!r}")
    refuse_async(function, subject)
    needed, most = _accepts(function, count)
    if needed > count or (most is not None and most < count):
        raise TopologyError(f"{subject} takes {count or 'no'} arguments, this one takes {needed}")


def takes_two(function: Callable[..., Any], subject: str) -> bool:
    """Return True if a function needs a second argument."""
    return _accepts(_checked(function, subject), 1)[0] == 2


def evaluated(value: Any) -> Evaluated | OfSpark | None:
    """Return a Column, ours or pyspark's, as a function of key and value; None for other objects."""
    if isinstance(value, Column):
        return Evaluated(value)
    return of_pyspark(value) if is_sparks(value) else None


def makes_pair(mapper: Any, subject: str) -> Callable[[Any, Any], Any]:
    """Return a function that returns a key and a value, from a function or a pair of Columns."""
    result = [*map(evaluated, mapper)] if isinstance(mapper, tuple) else []
    if len(result) == 2 and result[0] is not None and result[1] is not None:
        return Pair(result[0], result[1])
    if isinstance(mapper, tuple) or evaluated(mapper) is not None:
        raise TypeError(
            f"{subject} is a function that returns a pair, or a pair of Columns such as (col('key'), col('value')), "
            f"not {mapper!r}"
        )
    return with_key(mapper, 2, subject)


def chooses_partition(partitioner: Any) -> Any:
    """Return a partitioner, a function of topic, key, value and number of partitions, from a
    Column.

    Functions and None are returned as they are.
    """
    expression = evaluated(partitioner)
    if expression is None:
        return None if partitioner is None else _checked(partitioner, "a partitioner")
    return lambda _topic, key, value, _count: expression(key, value)


def with_key(function: AnyFunction, count: int, subject: str) -> Callable[..., Any]:
    """Return `function` with `count` arguments, of which the first is the key.

    A function that takes one argument fewer is called without the key. A Column, ours or pyspark's,
    is evaluated. Raises TopologyError for other functions.
    """
    expression = evaluated(function)
    if expression is not None:
        if count != 2:
            raise TopologyError(
                f"{subject} is a function: a Column sees one record's key and value"
            )
        return expression
    called = _checked(function, subject)
    needed, most = _accepts(called, count - 1)
    if needed == count or (most is None and needed < count):
        return called
    if needed <= count - 1 and (most is None or most >= count - 1):
        if count == 2:
            # It is called for every record; this wrapper is faster.
            return lambda _key, value: called(value)
        return lambda _key, *values: called(*values)
    raise TopologyError(
        f"{subject} takes {count - 1} argument{'s' if count > 2 else ''}, or {count} with the key first; "
        f"{getattr(function, '__name__', function)!r} takes {needed}"
    )
