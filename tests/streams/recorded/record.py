"""Records what Apache Kafka Streams does: `python -m tests.streams.recorded.record`.

Runs Scenarios.java (Kafka Streams' own TopologyTestDriver, fetched with Maven) over events that are made
here from a seed: late, out of order, without key, tombstones, at the same time. Writes a transcript
a scenario; test_recorded.py replays them on our driver, without Java. To look further than the committed
ones: `… record SEED FOLDER`, then `OTTLA_TRANSCRIPTS=FOLDER pytest tests/streams/test_recorded.py`.
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.compat import java
from tests.streams.recorded.configured import CONFIGURED
from tests.streams.recorded.topologies import SCENARIOS

KAFKA = "4.3.0"
TRANSCRIPTS = Path(__file__).parent / "transcripts"
_EVENTS = 70
# Seeds that found a difference stay.
_SEEDS = {"sliding_on_close": "s1", "stream_table_grace": "s1"}


def events(name: str, seed: str) -> list[str]:
    """Return the scripted events of a scenario."""
    own = _SEEDS.get(name, seed) if seed == "events" else seed
    rng = random.Random(f"{own} of {name}")
    topics = _topics(name)
    now, lines = 0, []
    for _ in range(_EVENTS):
        now += rng.choice((0, 0, 1, 1, 2, 3, 5, 9 if rng.random() < 0.5 else 25))
        late = rng.choice((0, 0, 0, 0, 1, 3, 6, 11, 24))
        key = rng.choice("aaabbbc" + ("-" if rng.random() < 0.3 else "a"))
        value = rng.choice("aabbcxy" + "--")
        lines.append(f"pipe {rng.choice(topics)} {key} {max(0, now - late)} {value}")
        if name in ("process", "processor_api") or name.endswith("_throttled"):
            lines += [f"clock {rng.choice((30, 120, 700))}"] * (rng.random() < 0.2)
    return lines


def _topics(name: str) -> list[str]:
    if name == "pattern":
        return ["in", "in-two"]
    if name in ("table_join_chain", "rekeyed_joined_twice"):
        return ["in", "other", "third"]
    two = ("join", "merge", "cogroup", "foreign_key", "stream_")
    return ["in", "other"] if any(each in name for each in two) and "self" not in name else ["in"]


def run(names: list[str], seed: str) -> str:
    """Run scenarios on Kafka Streams; return what was printed."""
    folder = java.jars(
        f"org.apache.kafka:kafka-streams-test-utils:{KAFKA}", "org.slf4j:slf4j-nop:1.7.36"
    )
    source = Path(__file__).with_name("Scenarios.java")
    script = (
        "\n".join("\n".join([f"scenario {name}", *events(name, seed)]) for name in names) + "\n"
    )
    with tempfile.TemporaryDirectory() as scratch:
        class_path = f"{scratch}:{folder}/*"
        compiler = ["javac", "-nowarn", "-cp", class_path, "-d", scratch, str(source)]
        subprocess.run(compiler, check=True, capture_output=True)
        program = [
            "java",
            "-Xmx512m",
            f"-Djava.io.tmpdir={scratch}",
            "-cp",
            class_path,
            "Scenarios",
        ]
        done = subprocess.run(program, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    return done.stdout


def main(seed: str = "events", folder: str = str(TRANSCRIPTS)) -> None:
    """Record every scenario."""
    names = sorted([*SCENARIOS, *CONFIGURED, "processor_api"])
    target = Path(folder)
    target.mkdir(exist_ok=True)
    for part in run(names, seed).split("scenario ")[1:]:
        name, _, text = part.partition("\n")
        (target / f"{name}.txt").write_text(text.removesuffix("end\n"))


if __name__ == "__main__":
    main(*sys.argv[1:])
