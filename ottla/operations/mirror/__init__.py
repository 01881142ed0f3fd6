"""Copies of topics that keep partitions and remember matching offsets."""
