"""Small runs of every kind that were kept, and what is compared with them."""
