"""`ottla log …`: inspect the files of a log directory, Ottla's or Apache Kafka's."""
