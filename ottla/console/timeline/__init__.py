"""Leaders, members of the ISR, and controllers over time: sampled, stored, and drawn."""
