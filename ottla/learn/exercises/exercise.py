"""An exercise: its task, what it prepares on a cluster, and the check of its goal."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.learn.events import Text
from ottla.learn.stage import Stage

Check = Callable[[], Text | None]
"""Returns what is missing, as it is on the cluster now; None if the goal is reached."""
Prepare = Callable[[Stage], Check]


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise; `prepare` returns the check, and `hints` are shown one by one on request."""

    name: str
    task: Text
    hints: tuple[Text, ...]
    prepare: Prepare
    brokers: int = 1
    options: Mapping[str, str] = field(default_factory=dict)


class ExerciseList:
    """The exercises of one subject, in order; `exercise` is a decorator for `prepare`."""

    def __init__(self) -> None:
        self.exercises: list[Exercise] = []

    def exercise(
        self, name: str, *, task: Text, hints: tuple[Text, ...], brokers: int = 1, **options: str
    ) -> Callable[[Prepare], Prepare]:
        """Add an exercise under a name; options of the cluster have Kafka's snake_case names."""
        dotted = {option.replace("_", "."): value for option, value in options.items()}

        def add(prepare: Prepare) -> Prepare:
            self.exercises.append(Exercise(name, task, hints, prepare, brokers, dotted))
            return prepare

        return add
