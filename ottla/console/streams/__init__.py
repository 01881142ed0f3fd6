"""Stream applications: what they publish, their topology and its drawing."""
