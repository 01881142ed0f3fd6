"""A lesson: a question, a scenario that shows what happens, and the explanation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.learn.events import Text
from ottla.learn.stage import Stage

Scenario = Callable[[Stage], None]


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson; `explanation` may contain every fact that the scenario has observed.

    The cluster has `brokers` brokers, and `options` in addition to the options of the course.
    """

    name: str
    subject: str
    question: Text
    explanation: Text
    scenario: Scenario
    brokers: int = 1
    options: Mapping[str, str] = field(default_factory=dict)


class Subject:
    """The lessons of one subject, in order; `lesson` is a decorator for scenarios."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lessons: list[Lesson] = []

    def lesson(
        self,
        name: str,
        *,
        question: Text,
        explanation: Text,
        brokers: int = 1,
        **options: str,
    ) -> Callable[[Scenario], Scenario]:
        """Add a scenario under a name; options of the cluster have Kafka's snake_case names."""
        dotted = {option.replace("_", "."): value for option, value in options.items()}

        def add(scenario: Scenario) -> Scenario:
            lesson = Lesson(name, self.name, question, explanation, scenario, brokers, dotted)
            self.lessons.append(lesson)
            return scenario

        return add
