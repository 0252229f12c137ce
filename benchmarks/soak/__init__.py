"""A week of bad luck in a day: `make soak`, or `HOURS=8 make soak`.

A file for each kind of bad luck. A part draws what it does from a seed, so that every failure can be repeated:

    python -m benchmarks.soak --only files --seed 123

Records are appended to results/soak.jsonl, from which results/soak.md is written. What was tried before is not tried
again: a run goes on with new seeds, after those that failed and have not passed since.
"""
