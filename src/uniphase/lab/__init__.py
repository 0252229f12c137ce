"""The laboratory: every table and figure of the paper as runs that are stored, shared and drawn."""
