"""The coordination tree against a model: a dictionary that is copied before every transaction."""

import copy
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.cluster.zk import journal
from ottla.cluster.zk.port import (
    BadVersion,
    Check,
    CoordinationError,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SetData,
)
from ottla.cluster.zk.tree import AppliedTransaction, Tree, parent_of

PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/1", "/b/s_", "/a/x/s_"])
VERSIONS = st.sampled_from([-1, -1, 0, 1, 2])
OWNERS = st.sampled_from([1, 2])
OPERATIONS = st.one_of(
    st.builds(Create, PATHS, st.binary(max_size=3), st.booleans(), st.booleans()),
    st.builds(Create, PATHS, st.binary(max_size=3)),
    st.builds(SetData, PATHS, st.binary(max_size=3), VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Check, PATHS, VERSIONS),
)


@dataclass
class Entry:
    """A node of the model."""

    data: bytes
    owner: int
    version: int = 0
    created: int = 0
    changes_of_children: int = 0
    ctime_ms: int = 0
    mtime_ms: int = 0


@dataclass
class Model:
    """The whole tree as a dictionary."""

    entries: dict[str, Entry] = field(default_factory=lambda: {"/": Entry(b"", 0)})

    def children(self, path: str) -> list[str]:
        """Return the names of the children of a node, found among all paths."""
        return sorted(
            item.rpartition("/")[2]
            for item in self.entries
            if item != "/" and parent_of(item) == path
        )

    def do(self, operation: Operation, owner: int, time_ms: int) -> None:
        """Apply an operation, or raise the error that the tree must raise."""
        path = operation.path
        if isinstance(operation, Create):
            self._create(operation, owner, time_ms)
            return
        entry = self.entries.get(path)
        if entry is None:
            raise NoNode(path)
        if operation.version not in (-1, entry.version):
            raise BadVersion(path)
        if isinstance(operation, SetData):
            entry.data = operation.data
            entry.version += 1
            entry.mtime_ms = time_ms
        elif isinstance(operation, Delete):
            if self.children(path):
                raise NotEmpty(path)
            del self.entries[path]
            self.entries[parent_of(path)].changes_of_children += 1

    def _create(self, operation: Create, owner: int, time_ms: int) -> None:
        path = operation.path
        parent = self.entries.get(parent_of(path))
        if parent is None:
            raise NoNode(path)
        if operation.sequential:
            path += f"{parent.created:010d}"
        if path in self.entries:
            raise NodeExists(path)
        parent.created += 1
        parent.changes_of_children += 1
        entry = Entry(operation.data, owner if operation.ephemeral else 0)
        entry.ctime_ms = entry.mtime_ms = time_ms
        self.entries[path] = entry


def below_ephemeral(model: Model, operations: list[Operation]) -> bool:
    """Return whether an operation may create a child of an ephemeral node, which is forbidden."""
    ephemeral = {path for path, entry in model.entries.items() if entry.owner}
    ephemeral |= {item.path for item in operations if isinstance(item, Create) and item.ephemeral}
    created = [item.path for item in operations if isinstance(item, Create)]
    return any(parent_of(path) in ephemeral for path in created)


class TreeMachine(RuleBasedStateMachine):
    """Random transactions of two sessions; journal and snapshot must yield the same tree."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = Tree()
        self.model = Model()
        self.journal = bytearray()
        self.time_ms = 0

    @rule(operations=st.lists(OPERATIONS, min_size=1, max_size=4), owner=OWNERS)
    def transact(self, operations: list[Operation], owner: int) -> None:
        """Apply all operations or none, with the model's error."""
        if below_ephemeral(self.model, operations):
            return
        self.time_ms += 1
        attempt = copy.deepcopy(self.model)
        expected: type[CoordinationError] | None = None
        try:
            for operation in operations:
                attempt.do(operation, owner, self.time_ms)
        except CoordinationError as error:
            expected = type(error)
        try:
            applied = self.tree.apply(operations, owner, self.time_ms)
        except CoordinationError as error:
            assert type(error) is expected
            return
        assert expected is None
        self.model = attempt
        self.keep(applied)

    @rule(owner=OWNERS)
    def end_session(self, owner: int) -> None:
        """Remove all ephemeral nodes of a session together."""
        self.time_ms += 1
        owned = [path for path, entry in self.model.entries.items() if entry.owner == owner]
        assert sorted(self.tree.ephemerals(owner)) == sorted(owned)
        ended = [Delete(path) for path in self.tree.ephemerals(owner)]
        applied = self.tree.apply(ended, owner, self.time_ms)
        assert applied.is_volatile
        for path in owned:
            self.model.do(Delete(path), owner, self.time_ms)
        self.keep(applied)

    def keep(self, applied: AppliedTransaction) -> None:
        """Write a transaction in the format of the journal."""
        touched = [path for path in self.model.entries if path != "/"]
        assert all(parent_of(path) in self.model.entries for path in touched)
        if applied.changes:
            transaction = journal.JournalEntry(applied.zxid, applied.changes, self.time_ms)
            self.journal += journal.encode_frame([transaction])

    @invariant()
    def tree_is_the_model(self) -> None:
        """Compare paths, data, versions, owners, times and children."""
        assert set(self.tree.nodes) == set(self.model.entries)
        for path, entry in self.model.entries.items():
            node, stat = self.tree.node(path), self.tree.stat(path)
            assert (node.data, stat.version, stat.ephemeral_owner) == (
                entry.data,
                entry.version,
                entry.owner,
            )
            assert (node.ctime_ms, node.mtime_ms) == (entry.ctime_ms, entry.mtime_ms)
            assert stat.children_version == entry.changes_of_children
            assert self.tree.children(path) == self.model.children(path)

    def teardown(self) -> None:
        """Check that replaying the journal, and restoring a snapshot, yields the same tree."""
        replayed = Tree()
        position = 0
        while position < len(self.journal):
            payload = journal.frame_at(bytes(self.journal), position)
            assert payload is not None
            for transaction in journal.decode_batch(payload):
                replayed.replay(transaction.zxid, transaction.changes, transaction.time_ms)
            position = journal.find_frame(bytes(self.journal), position + 1)
            if position < 0:
                break
        assert replayed.nodes == self.tree.nodes
        content = journal.encode_snapshot(self.tree.last_zxid, 3, self.tree.nodes)
        snapshot = journal.decode_snapshot(content)
        assert snapshot is not None
        restored = Tree()
        restored.restore(snapshot.last_zxid, snapshot.nodes)
        assert (restored.nodes, restored.last_zxid) == (self.tree.nodes, self.tree.last_zxid)
        for owner in (1, 2):
            assert sorted(restored.ephemerals(owner)) == sorted(self.tree.ephemerals(owner))


TreeMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestTree = TreeMachine.TestCase
