# `make fit` and `make test` are all a newcomer needs; both make the environment first.
PYTHON ?= python3
VENV := .venv
# One known build for the tests; users have any that the extra `torch` allows.
TORCH ?= torch==2.13.0

.PHONY: venv fit test lint bench docs clean

venv: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[dev,torch]"
	touch $@

fit: venv
	$(VENV)/bin/uniphase fit camera --force

test: venv
	$(VENV)/bin/python -m pytest -m "not slow"

lint: venv
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright

bench: venv
	$(VENV)/bin/python benchmarks/speed.py

docs: venv
	$(VENV)/bin/python docs/make_schemes.py
	$(VENV)/bin/python docs/make_doctor.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
