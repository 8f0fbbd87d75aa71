"""MANTa-LM (Godey et al. 2022)."""
