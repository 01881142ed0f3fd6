"""Pipeline files: the model of a file and its checks, without Spark.

`check(text)` returns a Checked: the Pipeline, if it can run, and every problem with its line and
column. `ottla.streams.spark.pipelines.run` runs it.
"""

from ottla.streams.pipelines.checking import Checked, check
from ottla.streams.pipelines.model import Pipeline
from ottla.streams.pipelines.problems import FilePosition, Problem

__all__ = ["Checked", "FilePosition", "Pipeline", "Problem", "check"]
