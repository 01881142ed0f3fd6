"""Compares the wire codec with other codecs, its own bytes and hostile ones."""
