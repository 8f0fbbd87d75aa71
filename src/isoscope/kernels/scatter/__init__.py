"""The scatter matrix of a cloud about a point, in float64 or from exact int8 products on a GPU."""
