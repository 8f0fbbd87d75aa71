"""Where inputs come from: an address becomes sequences, sequences become batches, positions count or not."""
