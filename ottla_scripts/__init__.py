"""Layer 7: Apache Kafka's command-line scripts by their own names, such as `kafka-topics`.

`table` lists every script with the `ottla` command that does the same, `entry` finds and runs one,
`flags` reads its command line as Apache Kafka's tools do, and a module for each tool
prints the same. Decision 0022 says why they are a distribution of their own.
"""
