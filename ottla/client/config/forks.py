"""Clients after a fork.

librdkafka's threads are not in the child process, where a call would wait for ever. So the child
finds the clients of its parent closed, with an error that says why.
"""

import os
from collections.abc import Callable
from types import MethodType
from typing import Any
from weakref import WeakKeyDictionary

FORKED = "the {} belongs to the parent process: create one in each process, after the fork"

_functions: WeakKeyDictionary[object, Callable[[Any], Any]] = WeakKeyDictionary()


def call_after_fork(method: Callable[[], Any]) -> None:
    """Call a method in every child process, unless its object was deleted before.

    An object has one such method; a later one replaces it.
    """
    assert isinstance(method, MethodType)
    _functions[method.__self__] = method.__func__


def _call_all() -> None:
    for client, function in list(_functions.items()):
        function(client)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_call_all)
