"""Record batches (format v2): headers, records, compression, control records, Arrow columns."""
