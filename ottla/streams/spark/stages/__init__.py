"""The code that runs in the Python workers of Spark."""
