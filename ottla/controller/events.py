"""The work of a term that waits in the controller's queue, and what its caller receives.

Each piece of work is handled to its end before the next one. Follows ControllerEvent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from ottla.controller.planning.notices import Delivered

R = TypeVar("R")


class Reply(NamedTuple, Generic[R]):
    """The result for the caller, and the deliveries to brokers that the caller waits for first."""

    value: R
    deliveries: Sequence["asyncio.Future[None]"] = ()


class BrokerEvents(Protocol):
    """Events of the brokers of a cluster."""

    async def brokers_changed(self) -> None:
        """Handle that a broker registered, left, or was found to have ended."""
        ...

    async def directories_failed(self) -> None:
        """Handle that a broker reported a failed log directory."""
        ...

    async def unclean_elections_enabled(self, topic: str | None) -> None:
        """Handle that a topic, None for all, may have leaders that are not in sync."""
        ...


class TermEvents(Protocol):
    """The events of a term that no caller waits for."""

    @property
    def brokers(self) -> BrokerEvents:
        """The events of brokers."""
        ...

    async def delivered(self, delivered: Delivered) -> None:
        """Handle a broker's response to a notice."""
        ...

    async def changes_expired(self, paths: Sequence[str]) -> None:
        """Handle that every broker has read these change notifications by now."""
        ...

    async def isrs_changed(self) -> None:
        """Handle that changes of the ISR have not been announced for a while."""
        ...

    async def balance_leaders(self) -> None:
        """Handle that the interval between two checks of the balance of leaders has passed."""
        ...


Post = Callable[[Callable[[TermEvents], Awaitable[None]]], None]
"""Adds work to the queue, for the term that is the current one when its turn comes."""
