"""The steps of a topology that run in the JVM as Column expressions."""
