"""An application for tests that kill it: it counts words exactly once.

`python -m tests.spark.app_driver BOOTSTRAP STATE_DIR MASTER FILE`; FILE is a module with a function
`place` of a count. Only this program can import it, so that it must be sent to the executors.
"""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from ottla.streams import KafkaStreams, Serdes, StreamsBuilder, Topology

APPLICATION_ID = "counting"
RECORDS_PER_BATCH = 100
_TEXT = Serdes.string()
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SPARK = {
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.executor.memory": "768m",
}


def topology(partitioner: Callable[[int], str]) -> Topology:
    """Return a topology that counts words."""
    builder = StreamsBuilder()
    words = builder.stream("words", key=_TEXT, value=_TEXT)
    counted = words.group_by_key().count("counts")
    counted.to_stream().map_values(partitioner).to("counted", key=_TEXT, value=_TEXT)
    return builder.build()


def main(bootstrap: str, state_dir: str, master: str, file: str) -> None:
    """Run the application."""
    sys.path.insert(0, str(Path(file).parent))
    module = importlib.import_module(Path(file).stem)
    app = KafkaStreams(
        topology(module.place),
        application_id=APPLICATION_ID,
        bootstrap_servers=bootstrap,
        processing_guarantee="exactly_once_v2",
        state_dir=state_dir,
        master=master,
        num_stream_threads=2,
        session_timeout_ms=6000,
        max_records=RECORDS_PER_BATCH,
        spark_settings=_SPARK,
        py_files=[file],
    )
    with app:
        app.await_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
