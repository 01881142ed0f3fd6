"""Stream processing: pipelines over topics, run on Apache Spark.

`spark/` reads and writes topics from PySpark as columns; it is the only place that imports pyspark.
Needs the extra `ottla[spark]`.
"""
