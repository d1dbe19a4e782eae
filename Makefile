# Everything a person or CI runs. `make demo` answers the main question; `make quick` runs the unit tests, `make test` more.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
TIERWISE := $(BIN)/tierwise
PYTHON ?= python3
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pytest compiles the tests; the next run takes what it compiled.
unexport PYTHONDONTWRITEBYTECODE

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml -o -name '*.bpf.o')
RUST_CRATES := --workspace --exclude tierwise-bindings --locked
NEEDED := cc:build-essential mkfs.ext4:e2fsprogs losetup:mount
PYTEST := $(BIN)/python -m pytest
SIDE_BY_SIDE := --numprocesses 2
NEEDED_BY_TESTS := mkfs.xfs:xfsprogs fio:fio mariadbd:mariadb-server-core my_print_defaults:mariadb-client-core chromium:chromium chromedriver:chromium-driver mmdebstrap:mmdebstrap shellcheck:shellcheck strace:strace
NEEDED_BY_BPF := clang:clang llvm-strip:llvm

.PHONY: help demo quick quick-rust quick-python test release-test check check-rust check-python docs bench robust compat bpf wheels record-static aarch64 audit report clean env

help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 15

env: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt $(RUST_SOURCES)
	@tools/debian-packages.sh $(NEEDED)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet maturin
	$(BIN)/maturin develop --release --locked --extras all,dev --quiet
	@touch $@

demo: env  ## does the log deserve the fast device? a real PostgreSQL answers, with a report
	$(TIERWISE) demo

quick: env  ## unit tests: a minute once compiled, no privileges
	cargo test --quiet --no-run --tests $(RUST_CRATES)
	$(MAKE) --jobs 2 --output-sync quick-rust quick-python

quick-rust:
	cargo test --quiet --tests $(RUST_CRATES)

quick-python:
	$(PYTEST) tests/unit $(SIDE_BY_SIDE) --dist worksteal

test: quick  ## unit, integration and lab tests, then the checks
	@tools/debian-packages.sh $(NEEDED_BY_TESTS) || echo "the tests that need these will be skipped"
	cargo test --quiet --tests $(RUST_CRATES) -- --ignored
	cargo test --quiet --doc $(RUST_CRATES)
	$(PYTEST) tests/integration tests/lab --ignore tests/lab/alone $(SIDE_BY_SIDE) --dist loadscope
	$(PYTEST) tests/lab/alone
	$(MAKE) check

release-test: env  ## what builds releases: wheels, the static recorder, its programs, fresh roots, planted faults
	@tools/debian-packages.sh $(NEEDED_BY_TESTS) $(NEEDED_BY_BPF) || echo "the tests that need these will be skipped"
	$(PYTEST) tests/release

check: env  ## formatting, lints, types, stubs, documentation
	$(MAKE) --jobs 2 --output-sync check-rust check-python

check-rust:
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --quiet --workspace --no-deps --locked

check-python:
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/mypy compat
	cd $(VENV) && bin/python -m mypy.stubtest tierwise._core
	$(MAKE) docs

docs: env  ## the documentation as a site in target/site, every link checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: env  ## the bars: simulator, replay, live disk, clients; the findings of the papers
	@tools/debian-packages.sh fio:fio
	cargo bench --quiet --locked -p tierwise-device -p tierwise-network
	$(BIN)/python benchmarks/disk_path.py
	$(BIN)/python benchmarks/client_cpu.py
	$(BIN)/python benchmarks/load_limit.py
	$(BIN)/python benchmarks/probe_fio.py
	$(BIN)/python benchmarks/record_cost.py
	$(BIN)/python benchmarks/ranking.py
	$(BIN)/python benchmarks/serve.py
	$(BIN)/python benchmarks/power_cuts.py
	$(BIN)/python benchmarks/device_deaths.py
	$(BIN)/python benchmarks/observe.py --write docs/evidence/observe.md
	$(BIN)/python benchmarks/shared_devices.py --write docs/evidence/shared-devices.md
	$(BIN)/python benchmarks/bounds.py --write docs/evidence/bounds.md
	$(BIN)/python benchmarks/front_search.py --write docs/evidence/placement-search.md
	$(BIN)/python benchmarks/fleet_size.py
	$(BIN)/python benchmarks/fleet_cluster.py
	$(BIN)/python benchmarks/papers.py
	$(BIN)/python benchmarks/findings.py
	$(BIN)/python benchmarks/dss_answers.py

robust: env  ## 10,000 malformed inputs, 1,000 kills and 200 interrupts at random moments; needs root and an hour and a half
	PYTHONPATH=tests $(BIN)/python -m support.malformed --count 10000
	$(BIN)/python benchmarks/kills.py --count 1000
	$(BIN)/python benchmarks/kills.py --count 200 --signal INT --out results/interrupts.jsonl

compat: env  ## tierwise inside guests with stock kernels and control groups of version 2 (root; 45 minutes)
	@tools/debian-packages.sh mmdebstrap:mmdebstrap qemu-system-x86_64:qemu-system-x86
	$(BIN)/python compat/run.py

bpf:  ## the recorder's programs in the kernel again, after a change of crates/recorder/bpf (clang)
	@tools/debian-packages.sh $(NEEDED_BY_BPF)
	tools/bpf.sh

record-static:  ## tierwise-record, the recorder as one static program for hosts without Python
	@tools/static-recorder.sh

audit: env  ## locked crates and packages against the public advisories (needs a network)
	cargo install --quiet --locked --root target/audit cargo-audit
	target/audit/bin/cargo-audit audit
	$(PYTHON) -m venv target/audit/python
	PIP_CONSTRAINT= target/audit/python/bin/pip install --quiet pip-audit
	target/audit/python/bin/pip-audit --requirement constraints.txt --no-deps

wheels:  ## dist/: the source distribution, and wheels for x86-64 and aarch64
	tools/wheels.sh

aarch64:  ## tests of the Rust crates under emulation; needs Debian's cross packages
	compat/aarch64.sh

report: env  ## write the report of the last demo again
	$(TIERWISE) report results/redo-placement/latest

clean:  ## undo whatever a killed run left behind, then remove what was built
	test ! -x $(TIERWISE) || $(TIERWISE) clean
	rm -rf target $(VENV)
