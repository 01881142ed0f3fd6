"""The broker's monitoring on a port of its own: `/metrics` for Prometheus and `/healthz`.

Names are those of jmx_exporter (Kafka's own rules) and kafka_exporter, so that dashboards made for
Apache Kafka show Ottla; names that only Ottla has begin with `ottla_`. Everything is read at the
time of the request; the only counters kept for it are those that nothing else needs.

Not done: names of jmx_exporter for components that Ottla does not have: queues between threads
(`kafka_network_requestchannel_requestqueuesize`, `kafka_network_requestmetrics_requestqueuetimems`,
`kafka_network_requestmetrics_responsequeuetimems`,
`kafka_network_requestmetrics_responsesendtimems`), a JVM (`jvm_memory_used_bytes`,
`jvm_gc_collection_seconds_count`, `jvm_threads_current`; `process_` and `python_` report the same),
and sessions with a ZooKeeper (`kafka_server_sessionexpirelistener_zookeeperdisconnects_total`,
`kafka_server_sessionexpirelistener_zookeeperexpires_total`). Flushes are not timed
(`kafka_log_logflushstats_logflushrateandtimems`). The group coordinator's names of Kafka 4.4
(KIP-1301) come with its protocol.
"""
