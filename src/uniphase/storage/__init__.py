"""The network file, whichever framework writes or reads it."""
