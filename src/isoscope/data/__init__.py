"""Where inputs come from: addresses become sequences and batches, with a rule for which positions count."""
