"""Layer 1: connections — frames in, responses out in order, with finite limits; no API."""
