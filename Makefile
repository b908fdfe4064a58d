# `make run` and `make test` set up whatever is missing. Everything lives in .venv, but for the browser of the page's tests:
# where there is none, `make test-page` installs Debian's Chromium and curl if it may, and `make test-postgresql` its PostgreSQL.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
OPTIONS = -n logical --maxprocesses 8 --dist loadgroup --no-loadscope-reorder --durations 25 --durations-min 1
PYTEST  = HYPOTHESIS_PROFILE=$(PROFILE) $(BIN)/python -m pytest $(OPTIONS)
PYTEST_ALONE = HYPOTHESIS_PROFILE=$(PROFILE) $(ALONE)/bin/python -m pytest $(OPTIONS)
PROFILE = ci
CHROME := chromium chromium-browser google-chrome google-chrome-stable
SANE   := .venvs/sanitize
ALONE  := .venvs/library
CONTRACT := tests/policies/test_policies.py tests/policies/test_python_digests.py tests/policies/test_edited_arrays.py tests/policies/test_words.py tests/bandit/test_copies.py tests/inputs/test_checks.py
SOUND  := tests/bandit tests/actions tests/outcomes tests/epochs tests/kernel tests/policies tests/inputs tests/model_file tests/inference tests/reference
NUMBERS := tests/bandit tests/actions tests/outcomes tests/epochs tests/kernel tests/policies tests/inputs tests/model_file tests/inference tests/reference tests/theory tests/environments tests/evaluation tests/advice tests/simulation
CODE   := $(wildcard kernel/*/*.?pp kernel/*/*/*.?pp)
KERNEL := CMakeLists.txt $(CODE)
export PYTHONDONTWRITEBYTECODE = # nothing: tests start hundreds of Pythons, and each would compile the library anew

.PHONY: help run test test-page test-postgresql test-all test-processors lint browser docs publish bench stubs sanitize soak site site-check newcomer wheels wheels-arm container-check release-check clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

run: $(VENV)/installed ## Set up, then run the main job: the paper's evaluation, a verdict for every claim
	$(BIN)/armlet-lab paper --out results/paper

test: $(VENV)/installed $(ALONE)/installed lint ## Set up, then run every check but those in a browser, those in PostgreSQL and the long ones; ends with what cost most
	@echo "==> the library, without the laboratory"
	$(PYTEST_ALONE) $(CHOSEN) tests src/armlet
	@echo "==> the laboratory and the documentation"
	$(PYTEST) $(CHOSEN) lab README.md docs
	ARMLET_POLICIES=literature $(PYTEST) $(CHOSEN) $(CONTRACT)

test-page: $(VENV)/installed browser ## The pages that Armlet writes, in a real browser
	@echo "==> pages in a browser"
	$(PYTEST) $(CHOSEN) tests/page lab/tests/page

test-postgresql: $(VENV)/installed ## Stores in PostgreSQL, in a private cluster; ARMLET_POSTGRESQL=postgresql://... for a database that is there
	@echo "==> stores in PostgreSQL"
	@[ -n "$$ARMLET_POSTGRESQL" ] || $(BIN)/python tools/postgresql.py
	$(PYTEST) $(CHOSEN) tests/postgresql

test-all: PROFILE = nightly
test-all: CHOSEN = -m ''
test-all: test test-page test-postgresql test-processors soak ## All of it: ten times the examples, the long statistics, the browser, the database, other processors, processes that are killed

# numpy and its BLAS add in another order on every kind of processor: what compares bits or bounds must not depend on it
test-processors: $(VENV)/installed ## The numbers once more as older processors add them
	@set -e; for core in Prescott Nehalem Haswell; do \
		echo "==> OpenBLAS as on $$core"; OPENBLAS_CORETYPE=$$core HYPOTHESIS_PROFILE=ci $(BIN)/pytest -q -n logical $(NUMBERS); done
	@echo "==> numpy without vector instructions"
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python tools/processor.py)" HYPOTHESIS_PROFILE=ci $(BIN)/pytest -q -n logical $(NUMBERS)

lint: $(VENV)/installed ## Style, types, the arrows of the architecture, and the size of its rooms
	@echo "==> ruff, clang-format, mypy, import-linter, rooms"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/rooms.py --check
	$(BIN)/python tools/kinds.py --check

browser: ## Find the browser that the tests open pages in, and curl for the lines of the docs; as root on Debian, install them
	@command -v curl >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& echo "==> no curl found: installing Debian's" \
		&& apt-get update -qq && apt-get install -qq --yes --no-install-recommends curl >/dev/null; } \
	|| { echo "the tests run lines of the docs: install curl" >&2; exit 1; }
	@for name in "$$ARMLET_BROWSER" $(CHROME); do command -v "$$name" >/dev/null && exit; done; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& echo "==> no browser found: installing Debian's chromium" \
		&& apt-get update -qq && apt-get install -qq --yes --no-install-recommends chromium >/dev/null \
	|| { echo "the tests need a browser: install Chromium or Chrome, or set ARMLET_BROWSER to its path" >&2; exit 1; }

docs: $(VENV)/installed ## Rebuild what the docs quote from the paper's evaluation
	$(BIN)/armlet-lab publish paper

publish: $(VENV)/installed ## Run what a page of the docs quotes at full scale and put it there: NAME=units; without a NAME, list the pages
	$(BIN)/armlet-lab publish $(NAME)

bench: $(VENV)/installed ## Check what is known of the peers' faults, then measure against them, each in an environment of its own
	$(BIN)/pytest -q benchmarks/test_peer_faults.py benchmarks/test_vowpal.py benchmarks/test_evaluators.py benchmarks/test_store.py benchmarks/test_serve.py benchmarks/test_litellm.py benchmarks/test_router.py benchmarks/test_catalogue.py
	$(BIN)/python benchmarks/run.py

stubs: $(VENV)/installed ## Rebuild the type stubs of the compiled module
	$(BIN)/python -m nanobind.stubgen --include-private --module armlet._kernel --pattern-file kernel/bindings/stubs.txt --output-file src/armlet/_kernel.pyi
	$(BIN)/ruff check --quiet --select I --fix src/armlet/_kernel.pyi
	$(BIN)/ruff format --quiet src/armlet/_kernel.pyi

# CPython keeps memory until it ends, and nanobind with it, so leaks are not looked for; PYTHONMALLOC=malloc lets the
# sanitizer see objects of Python too. A million calls and a hundred thousand files: FUZZ="--calls 1e7 --files 1e6" for more.
sanitize: $(SANE)/installed ## Tests and fuzzer on a kernel that reports wild memory and undefined behaviour
	@echo "==> tests of kernel, bandit and policies, then the fuzzer, on a kernel built with sanitizers"
	@set -e; libraries=; for name in asan ubsan stdc++; do libraries="$$libraries $$(g++ -print-file-name=lib$$name.so)"; done; \
	export LD_PRELOAD="$${libraries# }" PYTHONMALLOC=malloc PYTHONPATH=tests; \
	export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:max_allocation_size_mb=4000:quarantine_size_mb=64; \
	export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1; \
	$(SANE)/bin/python -m pytest -q -p no:cacheprovider $(wildcard $(SOUND)); \
	$(SANE)/bin/python -m fuzz all $(FUZZ)

soak: $(VENV)/installed ## Maintain a store in traffic, kill processes that use it, 200 times, and let two replicas suffer 60 faults; then the same to servers; SOAK="--kills 1000 --faults 300" for more
	@[ -n "$$ARMLET_POSTGRESQL" ] || $(BIN)/python tools/postgresql.py
	cd tests && ../$(BIN)/python -m soak $(SOAK)
	cd tests && ../$(BIN)/python -m soak --server $(SOAK)

site: $(VENV)/site ## Build the documentation into build/site/, for reading offline; runs every tutorial
	$(BIN)/python -m sphinx -n -W --keep-going --quiet --fresh-env --write-all -c docs . build/site
	@echo "==> build/site/index.html"

site-check: $(VENV)/site browser ## Search the site that `make site` built, and measure its pages, in a real browser
	PYTHONPATH=tests $(BIN)/python tools/pages.py

newcomer: $(VENV)/installed ## Time the path of a new user, from nothing to a durable loop and a server; WHEEL=dist/x.whl for a wheel that is there
	$(BIN)/python benchmarks/newcomer.py $(WHEEL)

wheels: $(VENV)/installed ## Build the wheels of every Python found and try each in an empty environment; WHEELS="3.11 3.13" for those
	$(PIP) --group wheels
	$(BIN)/python tools/wheels.py $(WHEELS)

wheels-arm: $(VENV)/installed ## Whether 64-bit ARM decides with the same bits, under qemu; needs Debian, its cross compiler and qemu-user-static
	$(BIN)/python tools/arm.py

container-check: $(VENV)/installed ## Run the steps of the Dockerfile in an empty folder, and ask the server that it makes; the image is not built
	$(BIN)/python tools/container.py

release-check: $(VENV)/installed ## Whether this tree may be released: changelog, versions, links, distributions
	$(BIN)/python tools/release.py

clean: ## Remove everything that was built or installed here
	rm -rf $(VENV) .venvs build dist results .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/tools: pyproject.toml constraints.txt
	@echo "==> setting up $(VENV) with $(PYTHON)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) pip
	$(PIP) --group dev
	@touch $@

$(VENV)/installed: $(VENV)/tools $(KERNEL)
	@echo "==> compiling the kernel"
	$(PIP) --no-build-isolation --editable '.[plots,data,store,postgresql,service,client]' --editable ./lab
	@touch $@

# the same packages, but for the laboratory: what users of the library alone have
$(ALONE)/installed: $(VENV)/installed
	@echo "==> an environment without the laboratory"
	rm -rf $(ALONE)
	$(BIN)/python -m venv --without-pip $(ALONE)
	ln -s $(CURDIR)/$(VENV)/lib/python3*/site-packages/* $$(echo $(ALONE)/lib/python3*/site-packages)/
	rm $(ALONE)/lib/python3*/site-packages/*armlet_lab*
	ln -s $(CURDIR)/$(BIN)/ruff $(ALONE)/bin/
	@touch $@

$(VENV)/site: $(VENV)/installed
	@echo "==> installing Sphinx"
	$(PIP) --group docs
	@touch $@

# Beside the normal environment, whose packages it borrows: only the kernel is another one.
$(SANE)/installed: $(VENV)/installed $(KERNEL)
	@echo "==> compiling the kernel with the address and undefined behaviour sanitizers"
	$(BIN)/python -m venv --without-pip $(SANE)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$(echo $(SANE)/lib/python3*/site-packages)/packages-of-the-normal-environment.pth
	CXX=g++ PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip --python $(SANE)/bin/python install --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation --config-settings=build-dir=build/sanitize \
		--config-settings=cmake.build-type=RelWithDebInfo --config-settings=cmake.define.ARMLET_SANITIZE=ON --editable .
	@touch $@
