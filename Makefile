PYTHON ?= python3
VENV ?= .venv
MINUTES ?= 10
BIN := $(VENV)/bin
# two workers of the tests share the cores
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test quick golden slow fuzz soak mutants bench flink prism pubsub lint clean

demo: $(VENV)/.plot-installed  ## the main job on a month of flights: table, picture, HTML page
	$(BIN)/python -m pipelines.demo --output demo-output

test: lint  ## ruff, mypy and the whole test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile

# the laws of every room, and what is changed most: mechanisms, decoding, counting, rows, the command line
QUICK := ldp/test_collection.py ldp/test_counts.py ldp/test_declared_structure.py ldp/test_mechanism_exact.py \
  messages/test_catalog.py messages/test_decoding.py messages/test_wire.py beam/test_coders.py beam/test_rows.py \
  beam/test_spec.py beam/test_windows.py project/test_layers.py

quick: $(VENV)/.test-installed  ## ruff, and the tests that one runs between two edits: less than a minute
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -n 2 --dist loadfile --exitfirst $(addprefix tests/,$(QUICK))

golden: $(VENV)/.test-installed  ## writes golden files, and what pages say of mechanisms, anew; prints what changed
	$(BIN)/python -m tests.support.golden

slow: $(VENV)/.test-installed  ## the tests that take minutes or compare running times
	$(BIN)/python -m pytest -m slow

fuzz: $(VENV)/.test-installed  ## a million spoiled messages against a slow reference; some minutes
	$(BIN)/python -m tests.fuzz.fuzz

soak: $(VENV)/.test-installed  ## the streaming job under load: ten minutes, or make soak MINUTES=600
	$(BIN)/python -m tests.campaigns.soak --minutes $(MINUTES)

mutants: $(VENV)/.test-installed  ## how many of 160 planted faults the tests find; an hour
	nice -n 10 $(BIN)/python -m tests.campaigns.mutants --sample 160

.PHONY: docs
docs: $(VENV)/.docs-installed  ## these pages and the API reference as a site, in site/
	$(BIN)/python -m mkdocs build --strict

bench: $(VENV)/.test-installed  ## reports per second, as ratios to numpy's limit
	$(BIN)/python -m benchmarks

flink: $(VENV)/.test-installed  ## the main job on Flink, over files and Kafka, with workers that get killed; fetches it (Java, Maven)
	$(BIN)/python -m deploy.flink
	$(BIN)/python -m deploy.flink.stream
	$(BIN)/python -m deploy.java

prism: $(VENV)/.test-installed  ## the main job on Prism; builds Prism (Go)
	$(BIN)/python -m deploy.prism

pubsub: $(VENV)/.test-installed  ## a second Pub/Sub server for the tests (make test uses it if it is there); builds it (Go)
	$(BIN)/python -m deploy.pubsub

lint: $(VENV)/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.%-installed: setup.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing uldp_transforms with Apache Beam (about a minute) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info demo-output site .pytest_cache .hypothesis
