"""The forms of a prediction: a choice, or a number that the lesson observes."""

from typing import NamedTuple

from ottla.learn.events import Text


class Choice(NamedTuple):
    """One choice, and why it is wrong; None if it is right."""

    text: Text
    why_not: Text | None = None


class Prediction(NamedTuple):
    """The question after a step, and two to four choices, one of which is right."""

    question: Text
    choices: tuple[Choice, ...]
    after: int = 0

    @property
    def right(self) -> int:
        """The number of the right choice."""
        return next(n for n, choice in enumerate(self.choices) if choice.why_not is None)


class Number(NamedTuple):
    """The question after a step, whose result is a number that the lesson observes as a fact."""

    question: Text
    fact: str
    after: int = 0


def choose(en: str, zh: str, *choices: Choice, after: int = 0) -> Prediction:
    """Return a prediction with choices."""
    return Prediction(Text(en, zh), choices, after)


def right(en: str, zh: str) -> Choice:
    """Return the right choice."""
    return Choice(Text(en, zh))


def wrong(en: str, zh: str, *why_not: str) -> Choice:
    """Return a wrong choice with the reason in English and in Chinese."""
    return Choice(Text(en, zh), Text(*why_not))
