"""The checker reports all mistakes of a pipeline file at once, with line and column."""

import json
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from ottla.streams.pipelines import Checked, Pipeline, check
from ottla.streams.pipelines.checking import check_topics, order_of_steps
from ottla.streams.pipelines.model import (
    Avro,
    ColumnStep,
    GroupBy,
    MirrorSink,
    TopicSink,
    TopicSource,
)

GOOD = dedent(
    """\
    name: flights
    trigger: 5 seconds
    sources:
      flights:
        topic: flights
        format: json
        schema:
          carrier: string
          delays: array<struct<minutes:int, reason:string>>
        watermark: {column: _timestamp, delay: 10 minutes}
      airlines: {topic: airlines, static: true}
    steps:
      late:
        from: flights
        do:
          - where: delays[0].minutes > 15
          - with: {hour: "date_trunc('hour', _timestamp)"}
      totals:
        sql: |
          WITH named AS (SELECT * FROM late JOIN airlines ON carrier = _key)
          SELECT carrier, window.start AS hour, count(*) AS flights
          FROM named GROUP BY carrier, window(_timestamp, '1 hour')
    sinks:
      totals: {from: totals, topic: totals, key: carrier}
    """
)


def _check(text: str) -> Checked:
    return check(dedent(text))


def _problems(text: str) -> list[str]:
    return [str(problem) for problem in _check(text).problems]


def _changed(old: str, new: str) -> list[str]:
    assert old in GOOD
    return _problems(GOOD.replace(old, new))


def _good() -> Pipeline:
    result = check(GOOD)
    assert result.problems == []
    assert result.pipeline is not None
    return result.pipeline


def test_a_file_is_parsed_into_a_pipeline() -> None:
    """The pipeline has sources, steps in the order of their dependencies, and sinks."""
    pipeline = _good()
    flights = pipeline.sources["flights"]
    assert isinstance(flights, TopicSource)
    assert [topic.text for topic in flights.topics] == ["flights"]
    assert flights.watermark is not None
    assert flights.watermark.delay == "10 minutes"
    assert [step.name for step in order_of_steps(pipeline)] == ["late", "totals"]
    assert isinstance(pipeline.sinks["totals"], TopicSink)


def test_a_source_starts_at_a_time_or_at_offsets() -> None:
    """A time without a zone is UTC; a dead-letter topic is named in a mapping."""
    options = "start: '@2026-01-01T00:00'", "start: {a: {0: 17, 1: 4}}, bad_records: {topic: dead}"
    texts = [GOOD.replace("static: true", option) for option in options]
    sources = [check(text).pipeline.sources["airlines"] for text in texts]  # type: ignore[union-attr]
    timed, placed = sources
    assert isinstance(timed, TopicSource) and isinstance(placed, TopicSource)
    assert timed.start.time_ms == 1_767_225_600_000
    assert json.loads(placed.start.offsets) == {"a": {"0": 17, "1": 4}}
    assert (placed.bad_records, str(placed.bad_topic)) == ("topic", "dead")


def test_steps_can_be_in_any_order() -> None:
    """A step may read a step that is defined after it."""
    text = """\
        name: x
        sources: {a: {topic: a}}
        steps:
          last: {sql: SELECT * FROM First}
          first: {sql: SELECT * FROM a}
        sinks: {out: {from: last, topic: out}}
        """
    pipeline = _check(text).pipeline
    assert pipeline is not None
    assert [step.name for step in order_of_steps(pipeline)] == ["first", "last"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "trigger: 5 seconds",
            "triger: 5 seconds",
            "line 2, column 1: the pipeline: unknown key triger. Did you mean trigger?",
        ),
        (
            "trigger: 5 seconds",
            "trigger: soon",
            "line 2, column 10: the pipeline: trigger must be an interval, such as 10 minutes, not 'soon'.",
        ),
        (
            "format: json",
            "format: jsn",
            "line 6, column 13: source flights: invalid value 'jsn' for format. Did you mean json?",
        ),
        (
            "carrier: string\n",
            "carrier: strng\n",
            "line 8, column 16: source flights: schema.carrier: Unknown data type strng. "
            "Did you mean string?",
        ),
        (
            "minutes:int,",
            "minutes:itn,",
            "line 9, column 15: source flights: schema.delays: Unknown data type itn. "
            "Did you mean int?",
        ),
        (
            "from: flights\n",
            "from: flight\n",
            "line 14, column 11: step late: there is no source or step flight. Did you mean flights?",
        ),
        (
            "where: delays[0].minutes > 15",
            "were: delays[0].minutes > 15",
            "line 16, column 9: step late: unknown key were. Did you mean where?",
        ),
        (
            "delays[0].minutes > 15",
            "(delays[0].minutes > 15",
            "line 16, column 16: step late: ( is not closed.",
        ),
        (
            "FROM late JOIN airlines",
            "FROM late JOIN airline",
            "line 20, column 46: step totals: there is no source or step airline. "
            "Did you mean airlines?",
        ),
        (
            "'1 hour')",
            "'1 hour)",
            "line 22, column 55: step totals: ' is not closed.",
        ),
        (
            "{from: totals, topic: totals, key: carrier}",
            "{topic: totals}",
            "line 24, column 3: sink totals: from is missing.",
        ),
        (
            "topic: totals, key",
            "topic: totals, jdbc: jdbc:derby:x, key",
            "line 24, column 41: sink totals: only one of topic and jdbc is allowed.",
        ),
        (
            "static: true",
            "static: maybe",
            "line 11, column 39: source airlines: static must be true or false, not 'maybe'.",
        ),
        ("static: true", "start: [a]", "line 11, column 38: source airlines: start must be a text, not a list."),
        ("static: true", "start: '@noon'", "line 11, column 39: source airlines: start: 'noon' is not a point in time: use milliseconds since 1970, a date or time like 2026-02-14 or 2026-02-14T12:00:00Z, or an age like -1h."),
        ("static: true", "start: {a: {0: x}}", "line 11, column 31: source airlines: start must have an offset for each partition, as in {0: 17}."),
        ("static: true", "start: {a: 5}", "line 11, column 31: source airlines: start.a must be a mapping of partitions to offsets."),
        ("static: true", "tombstones: no", "line 11, column 43: source airlines: invalid value 'no' for tombstones. There are: fail, row, skip."),
        ("static: true", "bad_records: {}", "line 11, column 44: source airlines: bad_records: topic is missing."),
        ("static: true", "bad_records: {topic: t}, static: true", "line 11, column 31: source airlines: a static source has no dead-letter topic: use skip or fail."),
        ("name: flights\n", "name:\n", "line 1, column 1: the pipeline: name has no value."),
        (
            "topic: flights",
            "pattern: 'flights-['",
            "line 5, column 23: source flights: pattern is not a valid regular expression: "
            "unterminated character set.",
        ),
        (
            "topic: flights",
            "pattern: 'a[^b&&c]'",
            "line 5, column 15: source flights: pattern 'a[^b&&c]' may have another meaning in Python than in Java at character 2: name the topics instead.",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_position(old: str, new: str, message: str) -> None:
    """The message has line and column, the reason, and a suggestion."""
    assert message in _changed(old, new)


def test_all_mistakes_are_reported_in_order() -> None:
    """A part that cannot be read is reported once."""
    actual = _problems(
        """\
        name: x
        sources:
          a: {topik: a}
          b: {topic: b, format: json}
        steps:
          c: {from: a, do: [{group_by: [x]}]}
        sinks:
          d: {from: c, files: out, formt: csv}
        """
    )
    assert [line.partition(": ")[0] for line in actual] == [
        "line 3, column 7",
        "line 4, column 3",
        "line 6, column 22",
        "line 8, column 28",
    ]


def test_cycles_are_reported() -> None:
    """Steps that read each other are reported once, in the order of the cycle."""
    text = """\
        name: x
        sources: {s: {topic: s}}
        steps:
          a: {sql: SELECT * FROM b}
          b: {sql: "SELECT * FROM c, s"}
          c: {from: a, do: [{select: ['*']}]}
        sinks: {out: {from: a, topic: out}}
        """
    assert _problems(text) == [
        "line 4, column 3: step a: cyclic reference: a reads b reads c reads a."
    ]


def test_aggregates_of_a_stream_without_a_watermark_are_rejected() -> None:
    """Spark would reject them at the start, or keep their state for ever."""
    # The joined airlines are static, and aggregates of static tables are complete.
    assert _changed("    watermark: {column: _timestamp, delay: 10 minutes}\n", "") == []
    text = """\
        name: x
        sources: {a: {topic: a}}
        steps:
          n: {sql: "SELECT value, count(*) AS n FROM a GROUP BY value"}
        sinks:
          out: {from: n, topic: out}
        """
    assert _problems(text) == [
        "line 6, column 3: sink out: aggregates of a stream without a watermark are never final: add a "
        "watermark to a source, so that windows close, or use `mode: update` in the sink to write "
        "every change of an aggregate."
    ]
    assert _problems(text.replace("topic: out}", "topic: out, mode: update}")) == []


def test_an_unused_source_or_step_is_a_warning() -> None:
    """The pipeline can still run."""
    actual = _check(GOOD.replace("from: totals, topic", "from: late, topic"))
    assert actual.pipeline is not None
    assert [str(problem) for problem in actual.problems] == [
        "line 11, column 3: warning: source airlines: no sink reads it: it will not run.",
        "line 18, column 3: warning: step totals: no sink reads it: it will not run.",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: The file is empty."),
        ("[" * 10_000, "line 1, column 1: The file has too many levels"),
        ('{"a":' * 10_000, "line 1, column 1: The file has too many levels"),
        ("- a\n", "line 1, column 1: A pipeline must be a mapping of keys, not a list."),
        (
            "a: [1\nb: 2\n",
            "line 2, column 2: Invalid YAML: while parsing a flow sequence that begins in line 1",
        ),
        ("name: x\nname: y\n", "line 2, column 1: Duplicate key name (first in line 1)."),
        ("name: !!python/object:os.system x\n", "line 1, column 7: Tags"),
        (
            "a: &x {b: *x}\n",
            "line 1, column 4: An alias must not refer to a node that contains it.",
        ),
        ("a: \x01\n", "line 1, column 4: Invalid YAML: character 0x1 is not allowed."),
        (
            "a: b: c\n",
            "line 1, column 5: Invalid YAML: mapping values are not allowed here; a text that",
        ),
    ],
)
def test_a_file_that_is_no_pipeline_is_rejected(text: str, message: str) -> None:
    """No input causes a traceback."""
    assert any(line.startswith(message) for line in _problems(text)), _problems(text)


def test_plain_scalars_are_texts() -> None:
    """No, on and 010 are texts, not false, true and 8 as in YAML 1.1."""
    text = GOOD.replace("carrier: string\n", "no: string\n").replace("name: flights", "name: 010")
    pipeline = check(text).pipeline
    assert pipeline is not None
    assert pipeline.name == "010"
    assert list(pipeline.sources["flights"].schema or ()) == ["no", "delays"]


def test_topics_are_checked_against_the_cluster() -> None:
    """A source topic must exist; for a sink topic that does not exist there is a warning."""
    texts = [str(topic) for topic in check_topics(_good(), ["flight", "airlines"])]
    assert texts == [
        "line 5, column 12: source flights: there is no topic flights. Did you mean flight?",
        "line 24, column 33: warning: sink totals: there is no topic totals yet: create it, "
        "unless the brokers may create topics automatically.",
    ]
    assert check_topics(_good(), ["flights", "airlines", "totals"]) == []


def test_a_mirror_copies_one_topic() -> None:
    """Offsets can only be translated if each partition mirrors one partition."""
    text = """\
        name: x
        sources: {a: {topic: a}, b: {topics: [a, b]}}
        steps: {c: {from: a, do: [{where: 'true'}]}}
        sinks:
          one: {from: a, mirror: a}
          two: {from: b, mirror: x}
          three: {from: c, mirror: x}
          good: {from: a, mirror: a, bootstrap: 'other:9092', groups: billing}
        """
    assert [line.partition(": sink")[0] for line in _problems(text)] == [
        "line 5, column 26",
        "line 6, column 15",
        "line 7, column 17",
    ]
    sink = _check(text.replace("mirror: a}", "mirror: z}")).pipeline
    assert sink is None
    good = MirrorSink(**vars(_mirror_of(text)))
    assert [group.text for group in good.groups] == ["billing"]
    assert good.offsets_topic == "a.mirror-offsets"


def _mirror_of(text: str) -> MirrorSink:
    lines = [
        line
        for line in dedent(text).splitlines()
        if not line.startswith(("  one", "  two", "  three"))
    ]
    pipeline = check("\n".join(lines)).pipeline
    assert pipeline is not None
    sink = pipeline.sinks["good"]
    assert isinstance(sink, MirrorSink)
    return replace(sink)


def test_windows_and_groups_are_parsed() -> None:
    """A group can consist of a window only; sizes are intervals."""
    text = """\
        name: x
        sources: {a: {topic: a, watermark: {column: _timestamp, delay: 1 minute}}}
        steps:
          n:
            from: a
            do:
              - group_by: []
                window: {column: _timestamp, size: 1 hour, slide: 10 minutes}
                aggregate: {n: count(*)}
        sinks: {out: {from: n, console: true}}
        """
    pipeline = _check(text).pipeline
    assert pipeline is not None
    step = pipeline.steps["n"]
    assert isinstance(step, ColumnStep)
    assert isinstance(step.operations[0], GroupBy)
    assert step.operations[0].window is not None
    assert step.operations[0].window.slide == "10 minutes"
    assert _problems(text.replace("size: 1 hour", "size: hour")) == [
        "line 8, column 44: step n: window: size must be an interval, such as 10 minutes, not 'hour'."
    ]


def test_text_files_have_one_column() -> None:
    """Their schema is known; one in the file is an error."""
    text = """\
        name: x
        sources: {a: {files: 'in/*.log', format: text}}
        sinks: {out: {from: a, files: out, format: text}}
        """
    assert _problems(text) == []
    assert _problems(
        text.replace(
            "format: text}}\n        sinks", "format: text, schema: {line: string}}}\n        sinks"
        )
    ) == ["line 2, column 48: source a: format text needs no schema: its only column is value."]


def test_a_password_in_a_file_is_rejected() -> None:
    """The error suggests the name of an environment variable instead."""
    text = """\
        name: x
        sources: {a: {topic: a}}
        sinks: {out: {from: a, jdbc: 'jdbc:derby:x', table: t, password: secret}}
        """
    assert [line for line in _problems(text) if "password_variable" in line]


_AVRO = """\
    name: avro
    sources:
      flights: {topic: flights, format: avro, schema: {carrier: string}, %s}
    sinks:
      out: {from: flights, topic: out, format: avro, %s}
    """
_FLIGHT = '{"type":"record","name":"F","fields":[{"name":"carrier","type":"string"}]}'


def test_avro_values_need_a_schema_or_a_registry(tmp_path: Path) -> None:
    """The schema is in the pipeline file or in its own file; a registry is given by its URL."""
    file = tmp_path / "flight.avsc"
    file.write_text(_FLIGHT)
    source = _check(_AVRO % (f"avro: {file}", "registry: 'http://registry:8081'"))
    assert source.problems == []
    assert source.pipeline is not None
    flights, out = source.pipeline.sources["flights"], source.pipeline.sinks["out"]
    assert isinstance(flights, TopicSource)
    assert isinstance(out, TopicSink)
    assert (flights.avro, out.avro) == (Avro(schema=_FLIGHT), Avro(registry="http://registry:8081"))
    assert _problems(_AVRO % (f"avro: '{_FLIGHT}'", "compression: zstd")) == []


@pytest.mark.parametrize(
    ("source", "sink", "message"),
    [
        (
            "start: latest",
            "key: carrier",
            "line 3, column 29: source flights: format avro needs registry",
        ),
        ("registry: x:8081", "key: carrier", "registry must begin with http://"),
        ("avro: missing.avsc", "key: carrier", "missing.avsc cannot be read: No such file"),
        ('avro: \'{"type":"recor"}\'', "key: carrier", "the Avro schema is invalid"),
    ],
)
def test_mistakes_about_avro_are_reported(source: str, sink: str, message: str) -> None:
    """The message has the position and the fix."""
    (problem,) = _problems(_AVRO % (source, sink))
    assert message in problem


def test_avro_options_require_the_avro_format() -> None:
    """With another format they are errors."""
    text = (_AVRO % ("registry: 'http://x'", "registry: 'http://x'")).replace("avro,", "json,")
    assert [
        "registry requires format avro, not json" in problem for problem in _problems(text)
    ] == [
        True,
        True,
    ]


_LAKE = "name: n\nsources: {{a: {{topic: a}}}}\nsinks: {{out: {{from: a, files: x, format: {}}}}}\n"


@pytest.mark.parametrize(
    ("kind", "package", "extension"),
    [
        ("delta", "io.delta:delta-spark_2.13", "io.delta.sql.DeltaSparkSessionExtension"),
        (
            "iceberg",
            "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        ),
    ],
)
def test_a_table_format_needs_its_package(kind: str, package: str, extension: str) -> None:
    """A missing package is named before Spark starts; with it, Spark's settings are added."""
    text = _LAKE.format(kind)
    (problem,) = _problems(text)
    assert f"sink out: format {kind} needs a package: add settings: " in problem
    assert f"{{spark.jars.packages: '{package}:VERSION'}}" in problem
    # Of a later Spark.
    named = f"{text}settings: {{spark.jars.packages: '{package.replace('4.0', '4.1')}:4.0.0'}}\n"
    pipeline = check(named).pipeline
    assert pipeline is not None
    assert pipeline.settings["spark.sql.extensions"] == extension
    own = check(f"{text}settings: {{spark.sql.extensions: 'a.B,{extension}'}}\n").pipeline
    assert own is not None
    assert own.settings["spark.sql.extensions"] == f"a.B,{extension}"
    assert check(_LAKE.format("parquet")).pipeline.settings == {}  # type: ignore[union-attr]
