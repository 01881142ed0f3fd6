"""Record the behaviour of Apache Kafka Streams: `python -m tests.streams.recorded.record`.

Runs Scenarios.java (Kafka Streams' own TopologyTestDriver, fetched with Maven) with events that are
generated here from a seed. Records can be late, out of order or without key, tombstones are among
them, and times can be equal. Writes one transcript per scenario; test_recorded.py replays them on
our driver, without Java. To test other seeds than the committed ones: `… record SEED FOLDER`, then
`OTTLA_TRANSCRIPTS=FOLDER pytest tests/streams/test_recorded.py`.

The program compare.py searches for differences with generated topologies and inputs. Store its
findings in a file of the folder `found`, as a line "scenario …" and the events; `… record found`
inserts Kafka's output.
"""

import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.compat import java
from tests.streams.recorded.configured import CONFIGURED
from tests.streams.recorded.topologies import SCENARIOS

KAFKA = "4.3.0"
TRANSCRIPTS = Path(__file__).parent / "transcripts"
FOUND = Path(__file__).parent / "found"
_EVENTS = 70
# Seeds that found a difference are kept.
_SEEDS = {"sliding_on_close": "s1", "stream_table_grace": "s1"}


def events(name: str, seed: str) -> list[str]:
    """Return the generated events of a scenario."""
    own = _SEEDS.get(name, seed) if seed == "events" else seed
    rng = random.Random(f"{own} of {name}")
    topics = topics_of(name)
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


def topics_of(name: str) -> list[str]:
    """Return the topics that a scenario reads."""
    if name == "pattern":
        return ["in", "in-two"]
    if name in ("table_join_chain", "rekeyed_joined_twice"):
        return ["in", "other", "third"]
    two = ("join", "merge", "cogroup", "foreign_key", "stream_")
    return ["in", "other"] if any(each in name for each in two) and "self" not in name else ["in"]


def compiled(scratch: str) -> list[str]:
    """Compile the Java programs into a folder; return the command to run them."""
    folder = java.jars(
        f"org.apache.kafka:kafka-streams-test-utils:{KAFKA}", "org.slf4j:slf4j-nop:1.7.36"
    )
    class_path = f"{scratch}:{folder}/*"
    sources = sorted(str(path) for path in Path(__file__).parent.glob("*.java"))
    compiler = ["javac", "-nowarn", "-cp", class_path, "-d", scratch, *sources]
    subprocess.run(compiler, check=True, capture_output=True)
    return [
        "java",
        *java.SHORT,
        "-Xmx512m",
        f"-Djava.io.tmpdir={scratch}",
        "-cp",
        class_path,
        "Scenarios",
    ]


def run(script: str) -> list[str]:
    """Run scenarios on Kafka Streams; return the output of each."""
    with tempfile.TemporaryDirectory() as scratch:
        program = compiled(scratch)
        done = subprocess.run(program, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    return [f"scenario {part}" for part in re.split(r"^scenario ", done.stdout, flags=re.M)[1:]]


def record_found() -> None:
    """Write Kafka's output into the files of the folder `found`."""
    files = sorted(FOUND.glob("*.txt"))
    scripts = [script_of(file.read_text()) for file in files]
    for each, text in zip(files, run("\n".join([*scripts, ""])), strict=True):
        each.write_text(text.removesuffix("end\n"))


def script_of(text: str) -> str:
    """Return the scenario and the events of a transcript, without the output."""
    lines = text.splitlines()
    events = [line for line in lines if line.startswith(("pipe ", "clock "))]
    return "\n".join([lines[0], *events])


def main(seed: str = "events", folder: str = str(TRANSCRIPTS)) -> None:
    """Record every scenario, or `found`."""
    if seed == "found":
        record_found()
        return
    names = sorted([*SCENARIOS, *CONFIGURED, "processor_api"])
    target = Path(folder)
    target.mkdir(exist_ok=True)
    script = "\n".join("\n".join([f"scenario {name}", *events(name, seed)]) for name in names)
    for each in run(f"{script}\n"):
        first, _, text = each.partition("\n")
        name = first.removeprefix("scenario ")
        (target / f"{name}.txt").write_text(text.removesuffix("end\n"))


if __name__ == "__main__":
    main(*sys.argv[1:])
