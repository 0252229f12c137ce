"""What is wrong with a network: measurements, findings, a report, and which published initialization it looks like."""
