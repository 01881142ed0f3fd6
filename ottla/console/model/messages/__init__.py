"""Records of topics for people: browse, search, tail; decoding, filters, masking."""
