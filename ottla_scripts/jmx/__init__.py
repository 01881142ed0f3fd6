"""`kafka-jmx`: the beans of a broker, read over HTTP."""
