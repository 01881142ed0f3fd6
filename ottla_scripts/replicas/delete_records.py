"""`kafka-delete-records` (org.apache.kafka.tools.DeleteRecordsCommand)."""

from ottla.base.errors import ApiError, OttlaError
from ottla.operations.json_documents import offsets_of
from ottla.operations.topics import new_starts, trim
from ottla.tools.text_files import read_json
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Options, Spec
from ottla_scripts.java_errors import at_leader, java_exception
from ottla_scripts.java_order import hash_order, partition_hash
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import cluster

SPEC = Spec(
    "This tool helps to delete records of the given partitions down to the specified offset.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "offset-json-file": Flag(
            'As in {"version": 1, "partitions": [{"topic": "a", "partition": 0, "offset": 5}]}; '
            "offset -1 is the end.",
            "Offset json file path",
        ),
    },
)


def run(options: Options) -> int:
    """Delete the records before the offsets of a file."""
    options.require("bootstrap-server", "offset-json-file")
    try:
        with cluster(options) as brokers:
            offsets = offsets_of(read_json(options["offset-json-file"]))
            if not options.is_json:
                out("Executing records delete operation")
            results: dict[tuple[str, int], int | str] = {}
            for key in hash_order(offsets, partition_hash):
                try:
                    results |= new_starts(trim(brokers, {key: offsets[key]}))
                except ApiError as error:
                    results[key] = java_exception(at_leader(error, *key))
    except OttlaError as error:
        err(str(error))
        return 1
    if options.is_json:
        as_json([{"topic": t, "partition": p, "result": r} for (t, p), r in results.items()])
        return 0
    out("Records delete operation completed:")
    for (topic, partition), result in results.items():
        name = "error" if isinstance(result, str) else "low_watermark"
        out(f"partition: {topic}-{partition}\t{name}: {result}")
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1
