"""Floor 1: connections — frames in, answers out in order, with every limit finite; knows no API."""
