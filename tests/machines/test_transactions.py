"""Transcripts of transactional ids: events, and indented below each event its effects.

`txn_*.txt` are executed line by line. Set OTTLA_REWRITE_TRANSCRIPTS=1 to write the current effects
into the files, and review the difference like code.

    init [timeout= id= epoch= fresh=]
        (id, epoch: of a producer that continues; fresh: an unused id)
    add id= epoch= partitions=TOPIC-N,… [bump=1]
    verify id= epoch= partition=TOPIC-N
    commit id= epoch= [bump=1 fresh=] · abort (bump: EndTxn 5; fresh: if epochs are exhausted)
    version N (the cluster's transaction.version)
    complete (every marker is written) · time [fresh=] (has it timed out?) · expire AFTER_MS
    now MS · set epoch=N (as after N producers) · reload (from the log)
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.coordinators.txn import machine, records
from ottla.coordinators.txn.machine import (
    Ending,
    InitProducerIdParameters,
    ProducerIdAndEpoch,
    TransitionResult,
)
from ottla.coordinators.txn.records import TransactionUpdate
from ottla.coordinators.txn.state import TransactionMetadata, TransactionState

TRANSCRIPTS = sorted(Path(__file__).parent.glob("txn_*.txt"))
REWRITE = os.environ.get("OTTLA_REWRITE_TRANSCRIPTS") == "1"


class Player:
    """Executes the lines of one transcript; everything that must be stored is stored at once."""

    def __init__(self) -> None:
        self.transaction: TransactionMetadata | None = None
        self.now_ms = 0
        # The cluster's transaction.version.
        self.version = 0

    def play(self, line: str) -> Iterator[str]:
        """Execute one line and return its effects."""
        verb, *words = line.split()
        if verb in ("now", "version"):
            setattr(self, {"now": "now_ms", "version": "version"}[verb], int(words[0]))
            return
        if verb in ("set", "reload", "time", "expire", "complete", "verify"):
            yield from self._look(verb, words)
            return
        outcome = self._decide(verb, dict(word.split("=", 1) for word in words))
        if outcome.next is not None:
            yield from self._store(outcome.next)
        result = outcome.code.name
        if outcome.producer != machine.NO_PRODUCER:
            result += " id={} epoch={}".format(*outcome.producer)
        yield result

    def _store(self, transaction: TransactionMetadata) -> Iterator[str]:
        self.transaction = transaction
        topic_partitions = ",".join(
            f"{topic}-{number}" for topic, number in sorted(transaction.partitions)
        )
        message = f"store {transaction.state.display_name} id={transaction.producer_id}"
        message += f" epoch={transaction.producer_epoch} timeout={transaction.timeout_ms}"
        message += f" started={transaction.started_ms} updated={transaction.updated_ms}"
        if transaction.next_producer_id >= 0:
            message += f" next={transaction.next_producer_id}"
        yield message + (f" partitions={topic_partitions}" if topic_partitions else "")

    def _decide(self, verb: str, values: dict[str, str]) -> TransitionResult:
        producer = ProducerIdAndEpoch(int(values.get("id", -1)), int(values.get("epoch", -1)))
        transaction = self.transaction
        if verb == "init":
            timeout_ms, fresh = int(values.get("timeout", 1000)), int(values.get("fresh", -1))
            assert machine.needs_producer_id(transaction, producer, self.version) == (fresh >= 0)
            current = transaction or machine.new_transaction("tx", fresh, timeout_ms)
            claim = InitProducerIdParameters(producer, timeout_ms, fresh, self.version)
            return machine.init_producer_id(current, claim, self.now_ms)
        if verb == "add":
            topic_partitions = [place(text) for text in values["partitions"].split(",")]
            version = 2 if values.get("bump") else 0
            return machine.add_partitions(
                transaction, producer, topic_partitions, self.now_ms, version=version
            )
        assert verb in ("commit", "abort"), verb
        is_commit = verb == "commit"
        if not values.get("bump"):
            return machine.end(transaction, producer, is_commit=is_commit, now_ms=self.now_ms)
        fresh = int(values.get("fresh", -1))
        return machine.end_with_bump(transaction, Ending(producer, is_commit, fresh), self.now_ms)

    def _look(self, verb: str, words: list[str]) -> Iterator[str]:
        if verb == "verify":
            values = dict(word.split("=", 1) for word in words)
            producer = ProducerIdAndEpoch(int(values["id"]), int(values["epoch"]))
            result = place(values["partition"])
            yield machine.verify_partition(self.transaction, producer, result).name
            return
        assert self.transaction is not None
        if verb == "set":
            epoch = int(words[0].removeprefix("epoch="))
            self.transaction = replace(self.transaction, producer_epoch=epoch)
        elif verb == "reload":
            record = records.encode(
                TransactionUpdate("tx", self.transaction), self.now_ms, self.version
            )
            change = records.decode(record)
            assert change is not None
            self.transaction = change.transaction
        elif verb == "complete":
            yield from self._store(machine.complete(self.transaction, self.now_ms))
        elif verb == "expire":
            yield "expired" if self.transaction.has_expired(self.now_ms, int(words[0])) else "stays"
        elif (
            self.transaction.state is TransactionState.ONGOING
            and self.transaction.left_ms(self.now_ms - 1) == 0
        ):
            values = dict(word.split("=", 1) for word in words)
            fresh = int(values.get("fresh", -1))
            assert machine.needs_next_id(self.transaction, self.version) == (fresh >= 0)
            yield from self._store(
                machine.fence(self.transaction, self.now_ms, version=self.version, fresh_id=fresh)
            )
        else:
            yield "in time"


def place(text: str) -> tuple[str, int]:
    """Parse topic-number."""
    topic, _, number = text.rpartition("-")
    return topic, int(number)


def played(transcript: str) -> str:
    """Execute a transcript's events and return it with their effects."""
    player = Player()
    lines: list[str] = []
    for line in transcript.splitlines():
        if line.startswith("    "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"    {message}" for message in player.play(line)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transaction_has_the_effects_of_the_transcript(path: Path) -> None:
    """Every event has exactly the effects that are written below it."""
    expected = path.read_text(encoding="utf-8")
    transcript_text = played(expected)
    if REWRITE:
        path.write_text(transcript_text, encoding="utf-8")
    assert transcript_text == expected or REWRITE
