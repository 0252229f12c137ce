"""Exports: a network's file as something that runs without this package: a page, an ONNX model, a script."""
