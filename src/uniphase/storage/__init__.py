"""The file format of networks, for all frameworks."""
