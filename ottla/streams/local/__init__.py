"""The local engine: runs a topology in this process, record by record, without Spark.

A worker is a member of the application's consumer group. It runs the tasks that the group's leader
assigns to it, one for each partition of a sub-topology, and commits their outputs, changelogs and
offsets together.

Not done: worker processes (start several programs; `num_stream_threads` are threads of one), costs
of traffic between racks (KIP-925), the streams group protocol (KIP-1071), a new layout for stateful
tasks whose topics gain partitions (an error), `is_local` reads of global stores and of tasks that
are being restored, KIP-796 queries (they read changelogs), restore listeners of global stores,
production exception handlers for records of changelogs that the broker refuses (as the state would
differ, the application fails). Changelogs of buffers (suppress, grace, outer joins) have their own
format: Kafka Streams in Java cannot continue with them. Read-only state stores (KIP-813) start
empty.
"""
