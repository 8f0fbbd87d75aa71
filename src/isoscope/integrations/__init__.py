"""Other people's training loops and trackers: each imported only when it is asked for."""
