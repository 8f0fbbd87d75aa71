"""Callbacks for other training loops, and experiment trackers; each is imported only when asked for."""
