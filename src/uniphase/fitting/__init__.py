"""What fits have in common in both frameworks: the plan, the loop, the identity of a run and the result, in NumPy."""
