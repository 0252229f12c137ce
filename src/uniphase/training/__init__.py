"""Training in JAX: terms, batches, optimizers and the one loop."""
