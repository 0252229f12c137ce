"""The command line: a file for each command."""

from .app import main as main
