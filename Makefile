VENV ?= .venv
PY := $(VENV)/bin/python

.PHONY: env
env: $(VENV)/installed

$(VENV)/bin/python:
	python3 -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml Cargo.toml $(shell find crates -name '*.rs' -o -name Cargo.toml)
	$(PY) -m pip install --quiet maturin
	$(VENV)/bin/maturin develop --release --extras dev --quiet
	touch $@
