"""Watch a model while it trains: schedule, probe, alarms and trackers."""
