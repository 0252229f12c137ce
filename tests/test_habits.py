import os
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def test_github_runs_the_same_checks_as_a_developer():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert set(workflow[True]) == {"push", "pull_request"}  # YAML reads the key `on` as a boolean
    commands = [step["run"] for step in workflow["jobs"]["checks"]["steps"] if "run" in step]
    assert commands == [".ci/run"]
    assert os.access(ROOT / commands[0], os.X_OK)
    assert workflow["jobs"]["checks"]["env"]["TORCH"].partition("+")[0] in (ROOT / "Makefile").read_text()


def test_ruff_runs_before_every_commit():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook["id"] for repository in config["repos"] for hook in repository["hooks"]]
    assert hooks[:2] == ["ruff-check", "ruff-format"]  # fixes first, as they may need formatting
