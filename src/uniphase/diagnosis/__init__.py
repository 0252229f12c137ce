"""What is wrong with a network: measurements, findings, and the published initialization that it looks like."""
