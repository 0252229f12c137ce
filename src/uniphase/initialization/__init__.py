"""The theory: moments of a signal, and the distributions that a network's weights are drawn from. NumPy only."""
