"""A measured model, a cloud, weights, a comparison or a training: what any run shows of its rows."""
