# Needs Python 3.11 or newer and make, nothing else: every target makes .venv itself.
# PYTHON names another interpreter, ARGS goes to the program that a target runs.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
OTHER  := .venv-newest
ECOSYSTEM := .venv-ecosystem
FRONTS := .venv-fronts
PANEL  := $(VENV)/share/jupyter/labextensions/perspex
ARGS   ?=
MINUTES ?= 10

# The tests start hundreds of processes, each of which would translate all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Where another environment is active, IPython warns of it, and in tests a warning is an error.
unexport VIRTUAL_ENV

.DEFAULT_GOAL := help
.PHONY: help docs docs-serve lab demo panel panel-test check test test-all soak fuzz gpu-test gpu-bench bench format clean lint types house \
	unit programs environments newest panel-check panel-contract panel-types panel-lint panel-models \
	panel-check-if-node panel-ui-if-node ecosystem suites libraries array-api

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Perspex needs Python 3.11 or newer: make PYTHON=python3.x")'
	@$(PYTHON) install.py $(VENV) ".[dev]"
	@test -e $(PANEL)/package.json || echo "Perspex is installed without its panel for JupyterLab;" \
		"with Node.js 20.19 or newer and npm, make panel adds it"
	@touch $@

lab: $(STAMP)  ## JupyterLab on examples/ with the Perspex kernel; ARGS="--port 9999 --no-browser"
	@echo "Next: open the address below in a browser, then quickstart.ipynb; Ctrl+C ends JupyterLab."
	$(BIN)/perspex lab examples $(ARGS)

ecosystem: $(ECOSYSTEM)/.libraries  ## libraries built on JAX, on Perspex and on jax; ARGS="replay --rounds 3"
	$(ECOSYSTEM)/bin/python examples/ecosystem/compare.py $(ARGS)

suites: $(ECOSYSTEM)/.libraries  ## the tests of such libraries, where they differ from jax; ARGS="chex --again"
	$(ECOSYSTEM)/bin/python -m pip install --quiet -r examples/ecosystem/suites.txt
	$(ECOSYSTEM)/bin/python examples/ecosystem/suites.py $(ARGS)

# ARRAY_API_TESTS names a checkout with its submodule, where GitHub cannot be reached.
ARRAY_API_TESTS ?= build/array-api-tests
array-api: $(ECOSYSTEM)/.few  ## the array API standard's own tests, where they differ from jax; ARGS="--seeds 1 2"
	@test -d $(ARRAY_API_TESTS) || { \
		git clone --quiet https://github.com/data-apis/array-api-tests $(ARRAY_API_TESTS) && \
		git -C $(ARRAY_API_TESTS) checkout --quiet 55fcc60179efa2680ddd6cd926ddf17b83530e2b && \
		git -C $(ARRAY_API_TESTS) submodule --quiet update --init; }
	$(ECOSYSTEM)/bin/python -m pip install --quiet pytest hypothesis ndindex pytest-json-report
	PYTHONPATH=tests $(ECOSYSTEM)/bin/python -m standard $(abspath $(ARRAY_API_TESTS)) $(ARGS)

# pip says what it fetches: the libraries are a gigabyte, jax among them, which Perspex leaves alone.
$(ECOSYSTEM)/.libraries: $(ECOSYSTEM)/.few examples/ecosystem/requirements.txt
	@echo "ecosystem: installing the libraries of examples/ecosystem/requirements.txt"
	$(ECOSYSTEM)/bin/python -m pip install -r examples/ecosystem/requirements.txt
	@touch $@

$(ECOSYSTEM)/.few: pyproject.toml examples/ecosystem/few.txt
	@echo "ecosystem: making $(ECOSYSTEM), with Perspex and the libraries of examples/ecosystem/few.txt"
	$(or $(NEWEST),$(error ecosystem: no Python 3.13 was found)) -m venv $(ECOSYSTEM)
	$(ECOSYSTEM)/bin/python -m pip install --editable ".[lab]" -r examples/ecosystem/few.txt
	@touch $@

demo: $(STAMP)  ## run examples/quickstart.ipynb without a browser, write build/quickstart.html
	$(BIN)/perspex run examples/quickstart.ipynb --html build/quickstart.html $(ARGS)
	@echo "Next: open build/quickstart.html in a browser, or make lab to run it yourself."

panel: $(STAMP)  ## build the panel of JupyterLab and install it; needs Node.js with npm
	$(BIN)/python hatch_build.py
	rm -rf $(PANEL)
	mkdir -p $(dir $(PANEL))
	cp -R labextension/dist $(PANEL)

panel-test: panel-check  ## the panel: lint, types, models, and every tab in a browser
	npm --prefix labextension run --silent test:ui

panel-check: panel-types panel-lint panel-models

# Written first, and then only read by what `make -j` runs side by side.
panel-contract: panel
	npm --prefix labextension run --silent types

panel-types: panel-contract
	npm --prefix labextension run --silent check

panel-lint: panel-contract
	npm --prefix labextension run --silent lint

panel-models: panel-contract
	npm --prefix labextension run --silent test

# The panel is tested where Node.js is, and in a browser where Chromium is, too.
panel-check-if-node:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(VENV)/.panel-checked; \
	else echo "panel: no Node.js was found, so the panel was not tested"; fi

# What it is made of and tested with. Where nothing of it has changed, it was tested before.
PANEL_SOURCES = $(shell find labextension -type d \( -name node_modules -o -name dist -o -name lib \) \
	-prune -o -type f -print) docs/panel.md docs/tutorial.md hatch_build.py \
	kernel/kernelspec/logo-svg.svg tests/data/units.json \
	$(addprefix magics/perspex_magics/panel/,contract.py schema.json schema.py)
$(VENV)/.panel-checked: $(PANEL_SOURCES)
	$(MAKE) --no-print-directory panel-check
	@touch $@

panel-ui-if-node:
	@if command -v npm >/dev/null; then npm --prefix labextension run --silent test:ui; fi

# Four tiers. Measured on two cores: CONTRIBUTING.md says how long each takes.
# Programs that the tests compile are kept in build/test-cache (tests/support/kept.py);
# PERSPEX_TEST_CACHE names another folder, and set to nothing switches that off.
check: $(STAMP)  ## before every commit, under a minute: lint, types, house, the product in one file
	$(MAKE) --no-print-directory -j 2 lint types house

# What is checked without being run keeps one processor busy: mypy and the panel's tools get two.
test: $(STAMP)  ## before every merge: every test of one Python, and the panel's models
	$(MAKE) --no-print-directory -j 2 lint types panel-check-if-node
	$(MAKE) --no-print-directory unit

# Programs wait for processes, the browser for its pages: side by side they keep both processors busy.
test-all: $(STAMP)  ## what continuous integration runs besides: newest Python, browser, more programs
	$(MAKE) --no-print-directory -j 2 programs elsewhere

.PHONY: elsewhere
elsewhere:
	$(MAKE) --no-print-directory environments
	$(MAKE) --no-print-directory newest
	$(MAKE) --no-print-directory libraries
	$(MAKE) --no-print-directory panel-ui-if-node

# Everything as users have it: XLA optimizes, and no program is there before it is compiled.
soak: $(STAMP)  ## for a night: an empty cache, 20,000 random programs, 200 interrupts and kills
	PERSPEX_TEST_CACHE= PERSPEX_OPTIMIZED=1 PERSPEX_PROGRAMS=20000 PERSPEX_SOAK=200 \
		$(BIN)/python -m pytest -q -n 2 --dist worksteal tests $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

house: $(STAMP)
	$(BIN)/python -m pytest -q tests/house tests/test_tiny.py

# Test files whose tests take half a second and more each: processes, kernels, notebooks, large
# programs. A fiftieth of the tests takes a fifth of the time. `make test-all` runs them, and has
# both processors busy, so what measures time (`undisturbed`) is not among them.
LONG = $(addprefix tests/core/,as_jax/doors/test_private.py as_jax/test_passed_on.py \
	as_jax/test_signatures.py as_jax/test_workers.py base/test_environment.py \
	control/test_callback_interrupts.py control/test_programs.py ops/test_ragged_exchange.py \
	runtime/compiler/test_compiling.py runtime/compiler/test_disk.py \
	runtime/compiler/test_kept.py runtime/processes runtime/test_fork.py \
	runtime/test_interruptible.py runtime/test_plugins.py runtime/test_resumable.py \
	test_distributed.py test_profiler.py transforms/test_random_programs.py) \
	$(addprefix tests/fuzz/test_,harness.py metamorphic.py notebook.py stress.py) \
	$(addprefix tests/house/test_,kept.py releases.py) \
	$(addprefix tests/kernel/test_,abuse.py cache.py callbacks.py cluster.py command.py \
	compiler_process.py console.py ending.py interrupt.py out_of_memory.py plain_ipython.py \
	portability.py protocol.py restarting.py run.py stale.py) \
	$(addprefix tests/magics/,captures/test_partly.py keys/test_reuse_scenarios.py \
	notebook/test_effects.py test_docs.py) \
	tests/notebooks tests/standard tests/typing

# `perspex.as_jax` acts when it is imported, so its examples run in processes of their own (tests/core).
# One more process than processors, as a tenth of the time is waited for something; not many, as each
# imports and collects all tests, which takes it 12 seconds.
WORKERS = -n $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) --maxprocesses 6
unit: $(STAMP)
	$(BIN)/python -m pytest -q $(WORKERS) --dist worksteal --doctest-modules --doctest-glob='*.md' \
		--ignore=core/perspex/as_jax --ignore=tests/devices --ignore=tests/soak \
		$(addprefix --ignore=,$(LONG)) \
		core magics kernel tests README.md docs $(ARGS)

# With them 500 random programs, and `make gpu-test` on the CPU.
programs: $(STAMP)
	PERSPEX_PROGRAMS=500 $(BIN)/python -m pytest -q -n 3 --dist worksteal \
		tests/devices tests/soak $(LONG)

# What depends on Python and jaxlib, on the newest ones that we support, where such a Python exists.
# `--version` must really run: a pyenv shim is on the path also for versions that are switched off.
NEWEST = $(shell for python in python3.13 "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.13.*/bin/python3.13; \
	do "$$python" --version >/dev/null 2>&1 && echo "$$python" && break; done)

environments:
	@if [ -n "$(NEWEST)" ]; then $(MAKE) --no-print-directory $(OTHER)/.installed $(ECOSYSTEM)/.few; fi

newest:
	@if [ -n "$(NEWEST)" ]; then $(MAKE) --no-print-directory test-newest; \
	else echo "newest: no Python 3.13 was found, so the core was tested on one Python only"; fi

.PHONY: test-newest
test-newest: $(OTHER)/.installed
	PYTHONPATH=core PERSPEX_PROGRAMS=200 $(OTHER)/bin/python -m pytest -q -n 2 --dist worksteal \
		tests/test_tiny.py tests/core/test_*.py tests/core/api/test_jit.py \
		$(addprefix tests/core/,as_jax base control jitted ops/test_linear.py runtime tracing) \
		tests/core/transforms/test_random_programs.py

# Notebooks with libraries in the Perspex kernel, held against figures that jax had.
libraries:
	@if [ -n "$(NEWEST)" ]; then $(MAKE) --no-print-directory test-libraries; \
	else echo "libraries: no Python 3.13 was found, so no library built on JAX was tested"; fi

.PHONY: test-libraries
test-libraries: $(ECOSYSTEM)/.few
	$(ECOSYSTEM)/bin/python examples/ecosystem/compare.py --recorded \
		eight_schools replay optax_schedules equinox_mlp

# Voila, JupyterHub with its proxy, MyST-NB, and the widget manager of VS Code: front ends of others.
.PHONY: test-fronts
test-fronts: $(FRONTS)/.installed  ## our kernel in Voila, JupyterHub, MyST-NB and VS Code's widgets; needs Node.js
	PERSPEX_FRONTS=$(FRONTS) $(BIN)/python -m pytest -q tests/soak/test_fronts.py
	PERSPEX_FRONTS=$(FRONTS) node --test labextension/ui-tests/vscode.test.mjs

# The package of VS Code is one file with all that it needs: only that file is fetched.
$(FRONTS)/.installed: pyproject.toml $(STAMP)
	$(PYTHON) -m venv $(FRONTS)
	$(FRONTS)/bin/python -m pip install --quiet --editable ".[fronts]"
	npm install --silent --no-audit --no-fund --prefix $(FRONTS) configurable-http-proxy@5
	mkdir -p $(FRONTS)/vscode
	cd $(FRONTS)/vscode && tar xzf "$$(npm pack --silent @vscode/jupyter-ipywidgets8@1.0.9)"
	@touch $@

# The wheel in clean environments of all Pythons that we support, as far as they are there.
PYTHONS = $(shell for python in 3.11 3.12 3.13; do \
	for found in python$$python "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$python.*/bin/python$$python; \
	do "$$found" --version >/dev/null 2>&1 && command -v "$$found" && break; done; done)

.PHONY: test-install
test-install: $(STAMP)  ## the wheel in clean environments of all Pythons, make demo in a fresh clone
	PERSPEX_SOAK=1 PERSPEX_PYTHONS="$$(echo $(PYTHONS) | tr ' ' :)" \
		$(BIN)/python -m pytest -q -n 2 tests/soak/test_install.py tests/soak/test_first_contact.py

$(OTHER)/.installed: pyproject.toml
	$(or $(NEWEST),$(error no Python 3.13 was found)) -m venv $(OTHER)
	$(OTHER)/bin/python -m pip install --quiet "jaxlib>=0.12,<0.13" ml_dtypes numpy opt_einsum \
		hypothesis pytest pytest-timeout pytest-xdist scipy
	@touch $@

# What is true of every device, on the fastest that is there; on the CPU a rehearsal.
gpu-test: $(STAMP)  ## tests of the device and a report in build/gpu-test.md; ARGS="--platform cuda"
	$(BIN)/python tests/devices/run.py $(ARGS)

gpu-bench: $(STAMP)  ## against real jax and the device's limits, into build/gpu.md; ARGS="--small"
	$(BIN)/python benchmarks/gpu.py $(ARGS)

fuzz: $(OTHER)/.installed  ## MINUTES=10 of random programs, held against real jax on Python 3.13
	PYTHONPATH=core:tests $(OTHER)/bin/python -m fuzz --minutes $(MINUTES) $(ARGS) \
		--jax-python "$$($(OTHER)/bin/python benchmarks/environment.py build/fuzz-env)"

bench: $(STAMP)  ## measure against real jax, in an environment of its own
	$(BIN)/python benchmarks/run.py $(ARGS)

# The theme asks no network; its maker's notice about a successor is none of a build's warnings.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "mkdocs-material>=9.6,<10"
	@touch $@

docs: $(VENV)/.docs  ## build the site into build/site; any warning or broken link fails
	$(MKDOCS) build --strict --quiet --config-file website/mkdocs.yml $(ARGS)
	@echo "docs: open build/site/index.html, or make docs-serve"

docs-serve: $(VENV)/.docs  ## the site on 127.0.0.1:8000, built again while you write
	$(MKDOCS) serve --config-file website/mkdocs.yml --watch website $(ARGS)

format: $(STAMP)  ## put every file into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove what the targets made
	rm -rf labextension/dist labextension/lib labextension/node_modules
	rm -f labextension/src/contract.ts labextension/src/lesson.ts
	rm -rf $(VENV) $(OTHER) $(ECOSYSTEM) $(FRONTS) build dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
