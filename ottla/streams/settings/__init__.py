"""The settings of an application: StreamsConfig, exception handlers, and the Java runtime for
Spark.
"""
