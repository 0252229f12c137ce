# `make fit` and `make test` are all a newcomer needs; both make the environment first.
PYTHON ?= python3
VENV := .venv
# One known build for the tests; users have any that the extra `torch` allows.
TORCH ?= torch==2.13.0

.PHONY: venv fit test lint bench soak docs site clean

venv: $(VENV)/tools

# The package with its command, which is all that `make fit` needs.
$(VENV)/package: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[cli]"
	touch $@

$(VENV)/tools: $(VENV)/package
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[all,dev,docs]"
	touch $@

fit: $(VENV)/package
	$(VENV)/bin/uniphase fit camera --force

# The matrices of the tests are small: a second thread of NumPy would take the time of the other worker, and wait.
test: venv
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python -m pytest -m "not slow" --numprocesses 2 --dist worksteal

lint: venv
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright
	$(VENV)/bin/lint-imports --no-cache

bench: venv
	$(VENV)/bin/python benchmarks/speed.py

# For minutes, or for as long as it is told: HOURS=8 make soak.
soak: venv
	$(VENV)/bin/python -m benchmarks.soak

# The pages that are written from code, and then the site.
docs: venv
	$(VENV)/bin/python docs/make_schemes.py
	$(VENV)/bin/python docs/make_doctor.py
	$(MAKE) site

# The site alone, in build/site. A link that leads nowhere is an error.
site: venv
	$(VENV)/bin/python docs/make_site.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .cache build
