"""Records the responses of Apache Kafka.

Run `python -m tests.compat.recorded.record [--ours] [--compare] [subject …]`. It plays each
transcript to a new Apache Kafka of both versions (Maven fetches them, Java runs them) and writes
the responses into the file; without a subject all files. `--ours` needs no Java: it writes Ottla's
responses where a line with `!` says that they differ on purpose. `--compare` writes nothing and
prints the differences between Ottla's responses and the recorded ones.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.compat.recorded import peers
from tests.compat.recorded.ours import agree, differences, play_to_ottla
from tests.compat.recorded.player import Played, play
from tests.compat.recorded.transcript import MODERN, OLDER, Transcript, read, write

FOLDER = Path(__file__).parent / "transcripts"


def record(transcript: Transcript) -> None:
    """Play to both Apache Kafkas and store their responses."""
    modern = _ask_kafka(MODERN, transcript)
    older = _ask_kafka(OLDER, transcript) if transcript.is_for_older else Played()
    for exchange in transcript.exchanges():
        exchange.modern = modern[exchange.line]
        exchange.older = {
            version: response
            for version, response in older.get(exchange.line, {}).items()
            if response != exchange.modern.get(version)
        }


def _ask_kafka(version: str, transcript: Transcript) -> Played:
    with (
        tempfile.TemporaryDirectory(prefix="recorded-") as folder,
        peers.running(version, Path(folder, "kafka"), transcript.options) as target,
    ):
        return play(transcript, target)


def record_ours(transcript: Transcript) -> None:
    """Store Ottla's responses where the transcript says why they differ from Kafka's."""
    played = play_to_ottla(transcript)
    for exchange in transcript.exchanges():
        exchange.ours = {}
        if exchange.reason is not None:
            exchange.ours = {
                version: response
                for version, response in played[exchange.line].items()
                if version not in exchange.modern
                or not agree(exchange, exchange.modern[version], response)
            }


def main(arguments: list[str]) -> None:
    """Record the given subjects, or all."""
    parser = argparse.ArgumentParser(description=__doc__, prog="record")
    parser.add_argument("--ours", action="store_true", help="write Ottla's meant deviations")
    parser.add_argument("--compare", action="store_true", help="say where Ottla differs")
    parser.add_argument("subjects", nargs="*", help="names of transcripts, or paths of others")
    options = parser.parse_args(arguments)
    paths = [
        Path(subject) if subject.endswith(".txt") else FOLDER / f"{subject}.txt"
        for subject in options.subjects
    ]
    work: Callable[[Transcript], None] = record_ours if options.ours else record
    for path in paths or sorted(FOLDER.glob("*.txt")):
        if options.compare:
            transcript = read(path)
            print("\n".join(differences(transcript, play_to_ottla(transcript))))
            continue
        start = time.monotonic()
        transcript = read(path)
        work(transcript)
        write(transcript)
        count = sum(len(exchange.modern) for exchange in transcript.exchanges())
        print(f"{path.stem}: {count} exchanges, {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
