"""Figures of fits, comparisons and diagnoses. Matplotlib is imported only when one is drawn."""
