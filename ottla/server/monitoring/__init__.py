"""What the broker shows of itself on a port of its own: `/metrics` for Prometheus and `/healthz`.

Names are those of jmx_exporter (Kafka's own rules) and kafka_exporter, so that dashboards made for
Apache Kafka show Ottla; what only Ottla has begins with `ottla_`. Everything is read when it is asked
for; the only counters kept for it are those that nothing else needs.
"""
