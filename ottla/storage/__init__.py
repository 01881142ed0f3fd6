"""Layer 2: the log on disk, in Apache Kafka 3.9's file formats.

From small to large: an index, a segment, a log, the log directories of a broker. `recovery` and
`retention` decide, `log` and `disk` act. Everything is synchronous and belongs to one event loop;
files are accessed only through the port in `ottla.base.files`.
"""
