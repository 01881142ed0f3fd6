"""The names of the beans in each dialect of Prometheus."""

import pytest

from ottla.metrics import dialects
from ottla.metrics.beans import (
    NONE,
    SHARES,
    Bean,
    Beans,
    Computed,
    Distribution,
    Idle,
    LabelledValue,
    Properties,
)
from ottla.metrics.dialects import CONFLUENT, JMX_EXPORTER, STRIMZI_REPORTER
from ottla.metrics.exposition import render

_topics = Beans("kafka.server", "BrokerTopicMetrics")
_pool = Beans("kafka.server", "KafkaRequestHandlerPool")
_sockets = Beans("kafka.server", "socket-server-metrics")
_listener = Properties(listener="PLAINTEXT", networkProcessor=0)

# A bean, its rows, and the lines of the three dialects (jmx_exporter and Strimzi's rules, Strimzi's
# reporter, Confluent's rules).
CASES: list[tuple[Bean, list[LabelledValue], str, str, str]] = [
    (
        _topics.meter("MessagesInPerSec", "M."),
        [(NONE, 3), (Properties(topic="a"), 2)],
        "kafka_server_brokertopicmetrics_messagesin_total 3\n"
        'kafka_server_brokertopicmetrics_messagesin_total{topic="a"} 2\n',
        "kafka_server_brokertopicmetrics_messagesinpersec_total 3\n"
        'kafka_server_brokertopicmetrics_messagesinpersec_total{topic="a"} 2\n',
        "kafka_server_brokertopicmetrics_messagesinpersec 3\n"
        'kafka_server_brokertopicmetrics_messagesinpersec{topic="a"} 2\n',
    ),
    (
        _pool.idle("RequestHandlerAvgIdlePercent", "I."),
        [(NONE, Idle(5, 0.5))],
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.5\n",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total 5\n",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate 0.5\n",
    ),
    (
        Beans("kafka.network", "SocketServer").gauge("NetworkProcessorAvgIdlePercent", "I."),
        [(NONE, 0.25)],
        "kafka_network_socketserver_networkprocessoravgidle_percent 0.25\n",
        "kafka_network_socketserver_networkprocessoravgidlepercent 0.25\n",
        "kafka_network_socketserver_networkprocessoravgidlepercent 0.25\n",
    ),
    (
        _sockets.attribute("connection-count", "C."),
        [(_listener, 4)],
        'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT",networkProcessor="0"} 4\n',
        'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT",networkProcessor="0"} 4\n',
        'kafka_server_socketservermetrics_connection_count{listener="PLAINTEXT",network_processor="0"} 4\n',
    ),
    (
        _sockets.total("connection-creation-total", "C."),
        [(_listener, 4)],
        'kafka_server_socket_server_metrics_connection_creation_total{listener="PLAINTEXT",networkProcessor="0"} 4\n',
        'kafka_server_socket_server_metrics_connection_creation{listener="PLAINTEXT",networkProcessor="0"} 4\n',
        'kafka_server_socketservermetrics_connection_creation_total{listener="PLAINTEXT",network_processor="0"} 4\n',
    ),
    (
        Beans("kafka.server", "KafkaServer").gauge("ClusterId", "C."),
        [(NONE, "abc")],
        "",
        'kafka_server_kafkaserver_clusterid_info{value="abc"} 1\n',
        "",
    ),
    (
        Beans("kafka.server", "DelayedOperationPurgatory").gauge("PurgatorySize", "P."),
        [(Properties(delayedOperation="Fetch"), 1)],
        'kafka_server_delayedoperationpurgatory_purgatorysize{delayedOperation="Fetch"} 1\n',
        'kafka_server_delayedoperationpurgatory_purgatorysize{delayedOperation="Fetch"} 1\n',
        'kafka_server_delayedoperationpurgatory_purgatorysize{delayedoperation="Fetch"} 1\n',
    ),
    (
        Beans("kafka.coordinator.group", "GroupMetadataManager").gauge("NumGroups", "G."),
        [(NONE, 2)],
        "kafka_coordinator_group_groupmetadatamanager_numgroups 2\n",
        "kafka_coordinator_group_groupmetadatamanager_numgroups 2\n",
        "kafka_coordinator_group_groupmetadatamanager_numgroups 2\n",
    ),
]  # fmt: skip


def lines(bean: Bean, rows: list[LabelledValue], *names: str) -> str:
    """Return the samples of a bean in the dialects, without headers."""
    text = "".join(render(dialects.families([bean.of(rows)], names)))
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize(("bean", "rows", "classic", "reporter", "confluent"), CASES)
def test_a_bean_has_the_name_of_the_dialect(
    bean: Bean, rows: list[LabelledValue], classic: str, reporter: str, confluent: str
) -> None:
    """The names are those that the dashboards of each dialect query."""
    assert lines(bean, rows, JMX_EXPORTER) == classic
    assert lines(bean, rows, STRIMZI_REPORTER) == reporter
    assert lines(bean, rows, CONFLUENT) == confluent


def test_a_timer_is_a_summary_or_untyped() -> None:
    """Confluent's rules give count and quantiles one name; a summary has names for count and sum."""
    bean = Beans("kafka.network", "RequestMetrics").timer("TotalTimeMs", "T.")
    value = Distribution(7, 9.5, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    rows: list[LabelledValue] = [(Properties(request="Fetch"), value)]
    name = "kafka_network_requestmetrics_totaltimems"
    quantiles = "".join(
        f'{name}{{request="Fetch",quantile="{share}"}} {value}.0\n'
        for value, share in enumerate(SHARES, 1)
    )
    count = f'{name}_count{{request="Fetch"}} 7\n{name}_sum{{request="Fetch"}} 9.5\n'
    assert lines(bean, rows, JMX_EXPORTER) == quantiles + count
    assert lines(bean, rows, STRIMZI_REPORTER) == quantiles + count
    assert lines(bean, rows, CONFLUENT) == f'{name}{{request="Fetch"}} 7\n' + quantiles


def test_a_name_of_several_dialects_is_served_once() -> None:
    """Prometheus rejects a page that has a name twice."""
    bean = Beans("kafka.server", "ReplicaManager").gauge("LeaderCount", "L.")
    text = "".join(render(dialects.families([bean.of(3)], (CONFLUENT, JMX_EXPORTER))))
    assert text.count("kafka_server_replicamanager_leadercount 3\n") == 1
    assert text.count("# TYPE") == 1


def test_unknown_dialects_and_no_dialect_have_no_names() -> None:
    """The dialects of exporters that are clients of Kafka are not renderings of beans."""
    bean = Beans("kafka.server", "ReplicaManager").gauge("LeaderCount", "L.")
    assert lines(bean, [(NONE, 3)], "kafka-exporter") == ""
    assert lines(bean, [(NONE, 3)]) == ""


def test_computed_rows_are_read_when_they_are_written() -> None:
    """A value that has disappeared in the meantime is omitted; rows can be read again."""
    values = {"a": 1, "b": 2}
    items = [(Properties(topic=name), name) for name in values]
    rows = Computed(items, values.get)
    del values["b"]
    values["a"] = 5
    assert [(properties.text, value) for properties, value in rows] == [('{topic="a"}', 5)]
    assert len(list(rows)) == 1
