"""The options that people type most are in transcripts, so they run against both brokers."""

import shlex

import pytest

from tests.compat.scripts.transcript import FOLDER, read

pytestmark = pytest.mark.slow

# Commands that do not run against both brokers.
_ONE_SIDED = {"A", "K", "O"}
# The tools and options of 1231 command lines in public repositories, by use. An option that 4.x has
# removed is read by our scripts only; test_flags and test_course have those.
TYPED = {
    "kafka-topics": "bootstrap-server topic create partitions replication-factor list describe "
    "config command-config if-not-exists delete alter",
    "kafka-console-consumer": "topic bootstrap-server from-beginning property max-messages "
    "partition consumer.config timeout-ms value-deserializer formatter-property group offset",
    "kafka-console-producer": "topic bootstrap-server property producer.config",
    "kafka-configs": "entity-type bootstrap-server alter entity-name add-config describe "
    "entity-default delete-config",
    "kafka-producer-perf-test": "topic num-records throughput producer-props record-size "
    "payload-file producer.config",
    "kafka-consumer-groups": "group describe list members reset-offsets state verbose delete "
    "to-latest to-earliest to-current execute dry-run export",
    "kafka-acls": "allow-principal add topic producer consumer resource-pattern-type operation "
    "list remove",
    "kafka-reassign-partitions": "reassignment-json-file execute verify throttle generate "
    "topics-to-move-json-file broker-list",
    "kafka-broker-api-versions": "bootstrap-server",
    "kafka-features": "bootstrap-server",
    "kafka-dump-log": "files print-data-log deep-iteration",
    "kafka-leader-election": "bootstrap-server election-type",
    "kafka-streams-application-reset": "application-id",
    "kafka-get-offsets": "topic",
    "kafka-log-dirs": "describe",
}


def _options_of(text: str) -> tuple[str, set[str]]:
    script, *words = shlex.split(text)
    return script, {word[2:].partition("=")[0] for word in words if word.startswith("--")}


@pytest.mark.parametrize("tool", TYPED)
def test_typed_options_are_in_a_transcript(tool: str) -> None:
    """Each is in a command that Apache Kafka's tool has recorded."""
    used: set[str] = set()
    for path in FOLDER.glob("*.txt"):
        for command in read(path).commands:
            if "O" not in command.marks:
                script, names = _options_of(command.text)
                used |= names if script == tool else set()
    assert set(TYPED[tool].split()) - used == set()


# The forms that people type most: a command line of each has all of these options.
FORMS = (
    "kafka-topics bootstrap-server topic create partitions replication-factor",
    "kafka-topics bootstrap-server topic create if-not-exists",
    "kafka-topics bootstrap-server topic create config",
    "kafka-topics bootstrap-server list",
    "kafka-topics bootstrap-server topic describe",
    "kafka-topics bootstrap-server topic delete",
    "kafka-topics bootstrap-server topic alter partitions",
    "kafka-console-consumer bootstrap-server topic from-beginning max-messages",
    "kafka-console-consumer bootstrap-server topic from-beginning property",
    "kafka-console-consumer bootstrap-server topic partition offset",
    "kafka-console-producer bootstrap-server topic",
    "kafka-console-producer bootstrap-server topic property",
    "kafka-configs bootstrap-server entity-type entity-name alter add-config",
    "kafka-configs bootstrap-server entity-type entity-name describe",
    "kafka-producer-perf-test topic num-records throughput record-size producer-props",
    "kafka-consumer-groups bootstrap-server group describe",
    "kafka-consumer-groups bootstrap-server list",
    "kafka-consumer-groups bootstrap-server group reset-offsets to-earliest execute",
    "kafka-acls bootstrap-server add allow-principal topic",
    "kafka-reassign-partitions bootstrap-server reassignment-json-file execute",
)


@pytest.mark.parametrize("form", FORMS)
def test_typed_form_is_a_command_of_a_transcript(form: str) -> None:
    """Its options are in one command line, which ran against both brokers with equal output."""
    tool, *options = form.split()
    assert any(
        script == tool and used >= set(options)
        for path in FOLDER.glob("*.txt")
        for command in read(path).commands
        if not _ONE_SIDED & set(command.marks)
        for script, used in [_options_of(command.text)]
    )
