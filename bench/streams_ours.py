"""The contender `ottla`: runs topologies on Spark, one after the other, as its standard input says.

A line has a topology and its topics, as JSON; an empty line ends the topology.
"""

import argparse
import sys
import tempfile

from bench.streams_orders import Order, orders
from bench.streams_topologies import build
from ottla.streams.spark import session
from ottla.streams.spark.query.compile import QuerySettings
from ottla.streams.spark.query.query import start


def main() -> None:
    """Run the orders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--max-records", type=int, default=200_000)
    options = parser.parse_args()
    spark = session("bench", cores=options.cores)
    settings = QuerySettings("", "", max_records=options.max_records)

    def run(order: Order) -> None:
        with tempfile.TemporaryDirectory() as folder:
            query = start(
                build(order.topology, order.source, order.table, order.sink),
                spark,
                application_id=order.application,
                bootstrap=options.bootstrap,
                checkpoint=folder,
                query_settings=settings,
            )
            with query:
                sys.stdin.readline()

    orders(run)
    spark.stop()


if __name__ == "__main__":
    main()
