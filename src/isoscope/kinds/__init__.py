"""Run kinds: what each kind of run shows beyond its rows."""
