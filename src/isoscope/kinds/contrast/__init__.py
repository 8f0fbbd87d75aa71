"""A contrast between trained arms."""
