"""Floor 2: the log on disk, file by file as Apache Kafka 3.9 keeps it.

From small to large: an index, a segment, a log, the log directories of a broker. `recovery` and
`retention` decide, `log` and `disk` do. Everything is synchronous and belongs to one event loop;
files are reached through the port in `ottla.base.files` alone.
"""
