"""A prediction on a terminal: the question before the step, and the verdict after the experiment."""

import sys
from collections.abc import Callable
from typing import Any

from ottla.learn.events import Facts, Text
from ottla.learn.predictions.catalogue import PREDICTIONS
from ottla.learn.predictions.prediction import Number, Prediction

_LETTERS = "abcd"
_PROMPT = Text("Your prediction (Enter skips it):", "你的预测（回车跳过）：")
_AGAIN = Text("Type one of {letters}.", "请输入 {letters} 之一。")
_NO_NUMBER = Text("Type a number.", "请输入一个数。")
_RIGHT = Text("Your prediction is right: {text}.", "预测正确：{text}。")
_WRONG = Text("You predicted: {yours}. It is: {text}.", "你的预测：{yours}。实际：{text}。")
_SKIPPED = Text("It is: {text}.", "实际：{text}。")
_WHY_NOT = Text("Not “{text}”: {why}", "为什么不是“{text}”：{why}")


class Asking:
    """Asks for the prediction of a lesson, if it has one, when its step has come."""

    def __init__(self, name: str, language: str, show: Callable[[str], object]) -> None:
        self._prediction = PREDICTIONS.get(name)
        self._language = language
        self._show = show
        self._predicted: int | None = None

    def after_step(self, number: int) -> None:
        """Ask if the prediction belongs after this step."""
        prediction = self._prediction
        if prediction is None or prediction.after != number:
            return
        self._show(self._text(prediction.question))
        if isinstance(prediction, Number):
            self._predicted = self._read(
                _NO_NUMBER, lambda line: int(line) if _is_int(line) else None
            )
            return
        letters = _LETTERS[: len(prediction.choices)]
        for letter, choice in zip(letters, prediction.choices, strict=True):
            self._show(f"  {letter}) {self._text(choice.text)}")
        self._predicted = self._read(
            Text(*(text.format(letters=", ".join(letters)) for text in _AGAIN)),
            lambda line: letters.index(line) if len(line) == 1 and line in letters else None,
        )

    def verdict(self, facts: Facts) -> None:
        """Show whether the prediction was right, and why the other choices are wrong."""
        prediction = self._prediction
        if isinstance(prediction, Number):
            observed = number_of(facts[prediction.fact])
            self._judge(self._predicted == observed, str(self._predicted), str(observed))
        elif isinstance(prediction, Prediction):
            self._judge_choice(prediction)

    def _judge_choice(self, prediction: Prediction) -> None:
        texts = [self._text(choice.text) for choice in prediction.choices]
        yours = "" if self._predicted is None else texts[self._predicted]
        self._judge(self._predicted == prediction.right, yours, texts[prediction.right])
        for text, choice in zip(texts, prediction.choices, strict=True):
            if choice.why_not is not None:
                self._show(self._text(_WHY_NOT, text=text, why=self._text(choice.why_not)))

    def _judge(self, is_right: bool, yours: str, text: str) -> None:
        sentence = _SKIPPED if self._predicted is None else _RIGHT if is_right else _WRONG
        self._show(self._text(sentence, yours=yours, text=text))

    def _read(self, again: Text, parse: Callable[[str], int | None]) -> int | None:
        while True:
            sys.stdout.flush()
            sys.stderr.write(f"{self._text(_PROMPT)} ")
            sys.stderr.flush()
            line = sys.stdin.readline().strip().lower()
            if not line:
                return None
            predicted = parse(line)
            if predicted is not None:
                return predicted
            self._show(self._text(again))

    def _text(self, sentence: Text, **facts: Any) -> str:
        return sentence.render(self._language, facts)


def number_of(fact: Any) -> int:
    """Return a fact as a number: the length of a list."""
    return len(fact) if isinstance(fact, list | tuple) else int(fact)


def _is_int(line: str) -> bool:
    return line.removeprefix("-").isdecimal()
