"""Generated inputs with their output in Kafka Streams.

`python -m tests.streams.recorded.generated` plays one random input of each scenario with parameters
on Kafka Streams' own TopologyTestDriver, and writes its output into a file of the folder
`generated`. test_compared.py replays the files on our driver, without Java; `make nightly` also
compares with a running Kafka Streams.
"""

import random
from pathlib import Path

from tests.streams.recorded import inputs
from tests.streams.recorded.compare import Java, Scenario
from tests.streams.recorded.shaped import SHAPED

GENERATED = Path(__file__).parent / "generated"
_SEED = "test"


def scenario_of(name: str) -> Scenario:
    """Return the scenario with its generated parameters and events."""
    return Scenario(*inputs.scenario(name, random.Random(f"{_SEED} of {name}")))


class Recorded:
    """Kafka Streams as it was recorded: a player of the generated scenarios only."""

    def play(self, scenario: Scenario) -> list[str]:
        """Return the recorded output of a scenario; the recorded input must be the same."""
        name = scenario.line.partition(" ")[0]
        first, *lines = (GENERATED / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        events = [line for line in lines if line.startswith(("pipe ", "clock "))]
        assert Scenario(first.removeprefix("scenario "), events) == scenario, "record it again"
        return lines


def main(names: list[str]) -> None:
    """Record every scenario again."""
    GENERATED.mkdir(exist_ok=True)
    with Java() as kafka:
        for name in names:
            scenario = scenario_of(name)
            lines = [f"scenario {scenario.line}", *kafka.play(scenario), ""]
            (GENERATED / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(sorted(SHAPED))
