"""A lesson: a question, a scenario that answers it, and the explanation."""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.testing.learn.events import Text
from ottla.testing.learn.stage import Stage

Scenario = Callable[[Stage], None]


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson; `explanation` may contain every fact that the scenario has observed.

    `options` are those of the cluster, which has `brokers` brokers.
    """

    name: str
    subject: str
    question: Text
    explanation: Text
    scenario: Scenario
    brokers: int = 1


class Subject:
    """The lessons of one subject, in order; `lesson` is a decorator for scenarios."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lessons: list[Lesson] = []

    def lesson(
        self, name: str, *, question: Text, explanation: Text, brokers: int = 1
    ) -> Callable[[Scenario], Scenario]:
        """Add a scenario under a name."""

        def add(scenario: Scenario) -> Scenario:
            self.lessons.append(Lesson(name, self.name, question, explanation, scenario, brokers))
            return scenario

        return add
