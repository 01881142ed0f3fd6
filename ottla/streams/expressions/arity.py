"""Users' functions take the value, or the key and the value: told apart once, when a topology is built."""

import inspect
from collections.abc import Callable
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


def _checked(function: Any, what: str) -> Callable[..., Any]:
    """Return a function; TypeError for an object that is none: it says which of its methods is one."""
    if callable(function):
        return function  # type: ignore[no-any-return]
    method = next((each for each in _METHODS if callable(getattr(function, each, None))), None)
    hint = f"; hand over its method: {type(function).__name__}().{method}" if method else ""
    raise TypeError(f"{what} is a function, not {function!r}{hint}")


def with_context(function: AnyFunction, what: str) -> Callable[..., Any]:
    """Return `function` as one of key, value and context; it takes the value, key and value, or all three."""
    called = evaluated(function) or _checked(function, what)
    needed, taken = _accepts(called, 1)
    if needed == 3:
        return called
    if needed > 3 or taken == 0:
        raise TopologyError(f"{what} takes the value, key and value, or key, value and context")
    plain = with_key(called, 2, what)

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
    return _accepts(_checked(function, what), 1)[0] == 2


def evaluated(value: Any) -> Evaluated | OfSpark | None:
    """Return a Column, ours or pyspark's, as a function of key and value; None for what is none."""
    if isinstance(value, Column):
        return Evaluated(value)
    return of_pyspark(value) if is_sparks(value) else None


def makes_pair(mapper: Any, what: str) -> Callable[[Any, Any], Any]:
    """Return what makes a key and a value of a record: a function, or a pair of Columns."""
    found = [*map(evaluated, mapper)] if isinstance(mapper, tuple) else []
    if len(found) == 2 and found[0] is not None and found[1] is not None:
        return Pair(found[0], found[1])
    if isinstance(mapper, tuple) or evaluated(mapper) is not None:
        raise TypeError(
            f"{what} is a function that makes a pair, or a pair of Columns such as (col('key'), col('value')), "
            f"not {mapper!r}"
        )
    return with_key(mapper, 2, what)


def chooses_partition(partitioner: Any) -> Any:
    """Return a partitioner: a function of topic, key, value and the number of partitions, or a Column; None stays None."""
    expression = evaluated(partitioner)
    if expression is None:
        return None if partitioner is None else _checked(partitioner, "a partitioner")
    return lambda _topic, key, value, _count: expression(key, value)


def with_key(function: AnyFunction, count: int, what: str) -> Callable[..., Any]:
    """Return `function` as one that takes `count` arguments, the key first.

    A function that takes one argument fewer gets all but the key; a Column, ours or pyspark's, is evaluated. TopologyError for any
    other.
    """
    expression = evaluated(function)
    if expression is not None:
        if count != 2:
            raise TopologyError(f"{what} is a function: a Column sees one record's key and value")
        return expression
    called = _checked(function, what)
    needed, taken = _accepts(called, count - 1)
    if needed == count or (taken is None and needed < count):
        return called
    if needed <= count - 1 and (taken is None or taken >= count - 1):
        if count == 2:
            # Called for every record: this one is called faster.
            return lambda _key, value: called(value)
        return lambda _key, *values: called(*values)
    raise TopologyError(
        f"{what} takes {count - 1} argument{'s' if count > 2 else ''}, or {count} with the key first; "
        f"{getattr(function, '__name__', function)!r} takes {needed}"
    )
