# Everything lives in .venv; nothing global is touched. `make run` and `make test` set up whatever is missing.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
KERNEL := CMakeLists.txt $(wildcard kernel/*.?pp kernel/bindings/*.?pp)

.PHONY: help run test lint bench stubs clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/installed ## Set up, then run the main job: the paper's evaluation, a verdict for every claim
	$(BIN)/armlet paper --out results/paper

test: $(VENV)/installed lint ## Set up, then run every check
	@echo "==> tests and doctests"
	$(BIN)/pytest

lint: $(VENV)/installed ## Style, types and the arrows of the architecture
	@echo "==> ruff, clang-format, mypy, import-linter"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror kernel/*.?pp kernel/bindings/*.?pp
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/installed ## Measure against the peers, each in an environment of its own
	$(BIN)/python benchmarks/run.py

stubs: $(VENV)/installed ## Rebuild the type stubs of the compiled module
	$(BIN)/python -m nanobind.stubgen --include-private --module armlet._kernel --pattern-file kernel/bindings/stubs.txt --output-file src/armlet/_kernel.pyi
	$(BIN)/ruff format --quiet src/armlet/_kernel.pyi

clean: ## Remove everything that was built or installed here
	rm -rf $(VENV) .venvs build results .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/tools: pyproject.toml constraints.txt
	@echo "==> setting up $(VENV) with $(PYTHON) (about a minute the first time)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) pip
	$(PIP) --group dev
	@touch $@

$(VENV)/installed: $(VENV)/tools $(KERNEL)
	@echo "==> compiling the kernel"
	$(PIP) --no-build-isolation --editable '.[bench]'
	@touch $@
