"""The types of users' functions: of the value, or of the key and the value, and Columns.

An operator has an overload for each number of arguments, so that type checkers can infer the types
of a lambda's parameters and of the resulting stream. Unknown types, such as a Column's, are
Any.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.streams.expressions.columns import Column, PysparkColumn

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")
R = TypeVar("R")

if TYPE_CHECKING:
    # Defaults of type variables need Python 3.13; type checkers provide this package themselves.
    from typing_extensions import TypeVar as TypeVarWithDefault

    K2 = TypeVarWithDefault("K2", default=Any)
    V2 = TypeVarWithDefault("V2", default=Any)
else:
    K2, V2 = TypeVar("K2"), TypeVar("V2")

Of1 = Callable[[V], R] | Column | PysparkColumn
"""A function of the value; or a Column of key and value, ours or pyspark's."""
OfPair = Callable[[V], tuple[K, W]] | tuple[Column | PysparkColumn, Column | PysparkColumn]
"""A function of the value that returns a key and a value; or a pair of Columns."""
Of2 = Callable[[K, V], R]
"""A function of key and value, or of two values."""
Of3 = Callable[[K, V, W], R]
"""A function of the key and two values."""
