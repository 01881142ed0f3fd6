"""The option tables: brokers, topics, groups, quotas and client metrics."""
