"""The configuration objects of the DSL: Consumed, Produced, Materialized, Joined and others."""
