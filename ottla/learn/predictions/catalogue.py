"""The prediction of each lesson, by the name of the lesson."""

from collections.abc import Mapping

from ottla.learn.predictions.basics import BASICS
from ottla.learn.predictions.brokers import BROKERS
from ottla.learn.predictions.defaults import DEFAULTS
from ottla.learn.predictions.prediction import Number, Prediction
from ottla.learn.predictions.producers import PRODUCERS
from ottla.learn.predictions.readers import READERS

PREDICTIONS: Mapping[str, Prediction | Number] = {
    **BASICS,
    **BROKERS,
    **PRODUCERS,
    **READERS,
    **DEFAULTS,
}
"""The prediction of each lesson."""
