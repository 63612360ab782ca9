# r2cc-simai: set-up, main job, tests. `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The environment that is active (venv, or conda other than base), else .venv; its programs come first.
CONDA_ENV := $(if $(filter-out base,$(CONDA_DEFAULT_ENV)),$(CONDA_PREFIX))
ENV := $(or $(VIRTUAL_ENV),$(CONDA_ENV),$(CURDIR)/.venv)
export PATH := $(ENV)/bin:$(PATH)

# Tests that run on real clocks, sockets and network namespaces.
TIMED_TESTS := tests/lab tests/real
CPP_FILES = find simulator -name '*.cpp' -o -name '*.hpp'

.PHONY: help simai sweep baseline test lint ruff types clang-format test-cpp test-python bench docs format clean setup-test

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

simai: ## Set up: system packages, environment, engine, command line
	@tools/setup.sh run "$(ENV)"

sweep: simai ## Set up and run the main job: results table and report (ARGS="..." adds options)
	r2cc-simai sweep $(ARGS)

baseline: simai ## Check a run against the committed baseline (RUN=folder, ARGS="..." adds options)
	r2cc-simai baseline check $(RUN) $(ARGS)

test: lint test-cpp test-python ## Set up and pass every check and test

lint: ruff types clang-format ## Style and types alone

test-cpp: setup-test ## C++ tests alone, under the address and undefined-behaviour sanitizers
	@CXX="$$(tools/components.sh compiler)" cmake -S . -B build/sanitized -G Ninja --log-level=NOTICE \
	    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-O1 -DSIMAI_TESTS=ON -DSIMAI_SANITIZE=ON -DSIMAI_WERROR=ON
	cmake --build build/sanitized
	ctest --test-dir build/sanitized --output-on-failure

test-python: setup-test ## Python tests alone: two at a time, but those that measure real time one after another
	pytest -n 2 --dist loadfile $(addprefix --ignore=,$(TIMED_TESTS))
	pytest $(TIMED_TESTS)

bench: simai ## Measure speed and memory against the targets (ARGS="--json": for programs)
	@python benchmarks/run.py $(ARGS)

docs: setup-test ## Build the documentation site: docs/_build/html/index.html
	sphinx-build -q -W --keep-going -b html docs docs/_build/html

format: setup-test ## Format the code and fix what ruff can
	ruff check --fix-only .
	ruff format .
	$(CPP_FILES) | xargs clang-format -i

clean: ## Remove what was built, .venv and caches (runs/ stays)
	rm -rf build dist .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis docs/_build docs/reference

setup-test:
	@tools/setup.sh test "$(ENV)"

ruff: setup-test
	ruff check .
	ruff format --check .

types: setup-test
	mypy
	mypy benchmarks/*.py

clang-format: setup-test
	$(CPP_FILES) | xargs clang-format --dry-run -Werror
