"""`write.format("ottla").save()` appends, as Spark's Kafka connector does.

Spark refuses its own default mode, ErrorIfExists, for every data source in Python. Topics are only
ever appended to: `save` chooses this mode unless the writer has another one.
"""

from functools import wraps
from typing import Any

from pyspark.sql import DataFrameWriter

_DEFAULT = "ErrorIfExists"
_MARK = "_ottla_appends"


def append_by_default(name: str) -> None:
    """Make writers of the format `name` append if no mode is set; idempotent."""
    save = DataFrameWriter.save
    if hasattr(save, _MARK):
        return

    @wraps(save)
    def checked(self: Any, *arguments: Any, **keywords: Any) -> None:
        known = dict(zip(_NAMES, arguments, strict=False)) | keywords
        writer = self._jwrite
        if known.get("mode") is None:
            source = known.get("format") or str(writer.source())
            if source.lower() == name and writer.curmode().name() == _DEFAULT:
                self.mode("append")
        save(self, *arguments, **keywords)

    setattr(checked, _MARK, True)
    DataFrameWriter.save = checked  # type: ignore[method-assign]


_NAMES = "path", "format", "mode", "partitionBy"
