"""The fenced writes of one controller term."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.cluster.zk.port import Coordination, Delete, NoNode, Operation, Result
from ottla.controller import state


class TreeWriter(NamedTuple):
    """Writes to the coordination tree as the controller of one term; StaleController if it is over."""

    session: Coordination
    term: state.Term

    async def write(self, operations: Sequence[Operation]) -> list[Result]:
        """Perform all operations or none."""
        return await state.write(self.session, self.term, operations)

    async def remove(self, paths: Iterable[str]) -> None:
        """Delete nodes one by one; a node that does not exist is skipped."""
        for path in paths:
            try:
                await self.write([Delete(path)])
            except NoNode:
                continue
