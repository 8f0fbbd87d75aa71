"""Run kinds: what each kind of run shows, registered in one table."""
