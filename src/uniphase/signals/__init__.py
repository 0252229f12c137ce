"""What is given: fields, and the files and arrays that they come from. NumPy only."""
