"""A topic as a table: Arrow, pandas, polars and DuckDB, and HTML for notebooks.

    orders = TopicView("orders", bootstrap="localhost:9092")
    orders.to_pandas(start=-1000)

pandas, polars and DuckDB are the caller's: each takes the Arrow table without a copy.
"""

from dataclasses import dataclass, field
from typing import Any

from ottla.client.arrow_table import DEFAULT_COLUMNS, read_table
from ottla.client.config.settings import Config
from ottla.client.doors import open_door
from ottla.client.records import html_table

_SHOWN_ROWS = 20


@dataclass(frozen=True)
class TopicView:
    """A topic to look at; each call reads it again. Needs the extra `ottla[arrow]`.

    `config` has the options of AdminClient, for example for TLS and SASL; the default of
    `bootstrap` is its bootstrap.servers, or localhost:9092. `arguments` of the methods are passed
    to `read_table`: columns, start, end, partitions and isolation.
    """

    topic: str
    bootstrap: str | None = None
    config: Config = field(default=None, repr=False, hash=False)

    def to_arrow(self, **arguments: Any) -> Any:
        """Return the records as a pyarrow.Table."""
        return read_table(self.topic, bootstrap=self.bootstrap, config=self.config, **arguments)

    def to_pandas(self, **arguments: Any) -> Any:
        """Return the records as a pandas.DataFrame; ImportError if pandas is not installed."""
        open_door("pandas", "pandas", "pandas")
        return self.to_arrow(**arguments).to_pandas()

    def to_polars(self, **arguments: Any) -> Any:
        """Return the records as a polars.DataFrame; ImportError if polars is not installed."""
        return open_door("polars", "polars", "polars").from_arrow(self.to_arrow(**arguments))

    def register(self, connection: Any, name: str | None = None, **arguments: Any) -> Any:
        """Register the records as a view of a DuckDB connection; return the connection.

        `name` is the topic's name by default. The view has the records as of this call.
        """
        connection.register(name or self.topic, self.to_arrow(**arguments))
        return connection

    def _repr_html_(self) -> str:
        """Return the last records of the topic, by timestamp, as an HTML table."""
        table = self.to_arrow(start=-_SHOWN_ROWS).sort_by("timestamp")
        last = table.slice(max(0, len(table) - _SHOWN_ROWS))
        rows = zip(*(last[name].to_pylist() for name in DEFAULT_COLUMNS), strict=True)
        return html_table(DEFAULT_COLUMNS, rows)
