"""The settings of an application: StreamsConfig, exception handlers, and the Java that Spark runs on."""
