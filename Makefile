PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test slow bench lint clean

demo: $(VENV)/.plot-installed  ## the main job on a month of flights: table, picture, HTML page
	$(BIN)/python -m pipelines.demo --output demo-output

test: $(VENV)/.test-installed  ## the whole test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile

slow: $(VENV)/.test-installed  ## the tests that take minutes or compare running times
	$(BIN)/python -m pytest -m slow

bench: $(VENV)/.test-installed  ## reports per second, as ratios to numpy's limit
	$(BIN)/python -m benchmarks

lint: $(VENV)/.lint-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.%-installed: setup.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing uldp_transforms with Apache Beam (about a minute) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info demo-output .pytest_cache .hypothesis
