"""Pipelines as files: what a file says, and what is wrong with it, without Spark.

`check(text)` returns a Checked: the Pipeline, if it can run, and every problem with its line and column.
`ottla.streams.spark.pipelines.run` runs it.
"""

from ottla.streams.pipelines.checking import Checked, check
from ottla.streams.pipelines.model import Pipeline
from ottla.streams.pipelines.problems import Place, Problem

__all__ = ["Checked", "Pipeline", "Place", "Problem", "check"]
