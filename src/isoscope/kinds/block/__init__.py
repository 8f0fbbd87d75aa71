"""An untrained block under a bias."""
