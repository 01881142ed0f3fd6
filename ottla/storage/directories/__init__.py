"""The log directories of a broker and the upkeep of their logs."""
