"""The DSL: StreamsBuilder, KStream, KTable, grouped streams."""
