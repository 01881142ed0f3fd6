"""History of topics and groups: sampled by the console, thinned out with age, kept for 7 days."""
