"""Clients after a fork.

librdkafka's threads are not in the child process, where a call would wait for ever. So the child
finds the clients of its parent closed, with an error that says why.
"""

import os
import weakref
from collections.abc import Callable
from typing import Any

FORKED = "the {} belongs to the parent process: create one in each process, after the fork"

_calls: set["weakref.WeakMethod[Callable[[], Any]]"] = set()


def call_after_fork(method: Callable[[], Any]) -> None:
    """Call a method in every child process, unless its object was deleted before."""
    _calls.add(weakref.WeakMethod(method, _calls.discard))


def _call_all() -> None:
    for reference in list(_calls):
        method = reference()
        if method is not None:
            method()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_call_all)
