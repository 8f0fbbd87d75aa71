"""Penalties on geometry, one per file, usable in any training loop; `table.py` lists them.

    with penalty.watch(model):
        loss = loss_of(model(batch))
    (loss + penalty(model)).backward()

Those of weights alone (`watches` is False) do without `watch`, and take compiled models.
"""
