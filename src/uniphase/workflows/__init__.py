"""Workflows: what the commands do, from a signal to a file and back, without parsing or printing."""
