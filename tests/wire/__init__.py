"""The wire codec against other codecs, its own bytes and hostile ones."""
