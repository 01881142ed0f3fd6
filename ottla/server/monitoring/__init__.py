"""The broker's monitoring on a port of its own: `/metrics` for Prometheus, `/jmx` and `/healthz`.

Kafka's own metrics are one table, keyed by the object names that they have in JMX
(`ottla.metrics`); the dialects of `/metrics` and `/jmx` are renderings of it. Two exporters that
are programs of their own for Kafka, kafka_exporter and kafka-lag-exporter, have their names too.
Names that only Ottla has begin with `ottla_`. Everything is read at the time of the request; the
only counters kept for it are those that nothing else needs. docs/monitoring.md describes names and
dialects.

Each value has one reporter in a cluster: a partition its leader, a group its coordinator, the
cluster its controller. Sums over all brokers are therefore the same as Apache Kafka's.

Not done: the time that a response spends in the socket
(`kafka_network_requestmetrics_responsesendtimems`); fetches of consumers and followers are
counted together (no `request="FetchConsumer"` and `request="FetchFollower"`); the rate of the
slowest fetcher (`kafka_server_replicafetchermanager_minfetchrate`); conversions of messages
(`…_producemessageconversionspersec`, `…_fetchmessageconversionspersec`); the rates at which
connections are opened and closed, and connections by the client's software
(`kafka_server_socketservermetrics_connections`); the share of time in which an acceptor is blocked
(`kafka_network_acceptor_acceptorblockedpercent`). A Python process has no JVM;
with the option metrics.jvm.names it serves `jvm_memory_used_bytes`,
`jvm_gc_collection_seconds_count` and `jvm_threads_current` for dashboards that need these names.
"""
