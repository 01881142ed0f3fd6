"""Delta and Iceberg: formats of a `files` sink whose package a pipeline's settings must name.

A package that is missing is refused before Spark starts, which takes seconds. Spark's settings for
the format are added. The log of such a table has the number of each micro-batch, so that a batch
that Spark repeats is written once.

Not done: tests with a real table: no release of either package is built for Spark 4.3, which the
requirements have (delta-spark 4.4.0 has packages for Spark 4.1 and 4.2, iceberg-spark-runtime
1.12.0 for Spark 4.1 at most); sources of these formats, which readers of files are not.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TableFormat:
    """What a table format needs: its package in Maven, and Spark's settings."""

    package: str
    artifact: str
    """The name of the package without the versions of Spark and Scala."""
    settings: Mapping[str, str]

    def is_named(self, settings: Mapping[str, str]) -> bool:
        """Return True if the settings load the package, or are those of an installation that has
        it.
        """
        extension = self.settings[_EXTENSIONS]
        return extension in settings.get(_EXTENSIONS, "") or any(
            self.artifact in settings.get(name, "")
            for name in ("spark.jars.packages", "spark.jars")
        )


_EXTENSIONS = "spark.sql.extensions"
_CATALOG = "spark.sql.catalog.spark_catalog"
_FORMATS = {
    "delta": TableFormat(
        "io.delta:delta-spark_2.13",
        "delta-spark",
        {
            _EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
            _CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    "iceberg": TableFormat(
        "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13",
        "iceberg-spark-runtime",
        {
            _EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            _CATALOG: "org.apache.iceberg.spark.SparkSessionCatalog",
        },
    ),
}


def missing_package(name: str, settings: Mapping[str, str]) -> str | None:
    """Return the package that a format needs and the settings do not name; None if they do."""
    table_format = _FORMATS[name]
    return None if table_format.is_named(settings) else table_format.package


def with_table_settings(settings: Mapping[str, str], formats: set[str]) -> dict[str, str]:
    """Return a pipeline's settings with those of the formats of its sinks; its own come first."""
    added: dict[str, str] = {}
    for name in sorted(formats & _FORMATS.keys()):
        needed = _FORMATS[name].settings
        extensions = filter(None, (added.get(_EXTENSIONS), needed[_EXTENSIONS]))
        added = {**needed, **added, _EXTENSIONS: ",".join(extensions)}
    return {**added, **settings}
