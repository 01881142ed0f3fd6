"""Records the options of Apache Kafka's tools: `python -m tests.compat.scripts.options`.

The options are those that `--help` prints, for tools with subcommands the options of each;
test_options compares them with ours without Java.
"""

import json
import re
import subprocess
from pathlib import Path

from tests.compat import java
from tests.compat.scripts.classes import CLASSES
from tests.compat.scripts.transcript import MODERN

OPTIONS = Path(__file__).parent / "files" / "options.json"
_SUBCOMMANDS = {
    "kafka-cluster": ("cluster-id", "unregister", "list-endpoints"),
    "kafka-features": (
        "describe",
        "upgrade",
        "downgrade",
        "disable",
        "version-mapping",
        "feature-dependencies",
    ),
    "kafka-metadata-quorum": ("describe", "add-controller", "remove-controller"),
    "kafka-storage": ("info", "format", "version-mapping", "feature-dependencies"),
    "kafka-transactions": (
        "list",
        "describe",
        "describe-producers",
        "abort",
        "find-hanging",
        "force-terminate",
    ),
}
# At the start of a line, or in the line of usage.
_OPTION = re.compile(r"(?:^\s*(?:-\w, )?|[\[(|]\s*)--([a-z][a-z0-9.-]+)", re.MULTILINE)


def record() -> dict[str, list[str]]:
    """Return the options of each tool of the modern version."""
    class_path = java.kafka_class_path(MODERN)
    options: dict[str, list[str]] = {}
    for script, main_class in sorted(CLASSES.items()):
        # Removed in 4.0.
        is_of_another_parser = main_class.startswith(("kafka.", "org.apache.zookeeper."))
        if is_of_another_parser and script not in ("kafka-configs", "kafka-storage"):
            continue
        texts = []
        for subcommand in _SUBCOMMANDS.get(script, ("",)):
            words = [subcommand] if subcommand else []
            line = java.command(class_path, main_class, *words, "--help")
            done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
            texts.append(done.stdout + done.stderr)
        # kafka-e2e-latency prints none.
        if found := sorted(set(_OPTION.findall("\n".join(texts)))):
            options[script] = found
    return options


if __name__ == "__main__":
    OPTIONS.write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")
