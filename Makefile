# `make demo` and `make test` set up all they need in .venv, on a machine that has python3 (>= 3.11) and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
GATE := $(BIN)/python -m pytest suites --kb-baseline=reference

.PHONY: demo demo-candidates test lint types check wheel clean

# Gate the embedded checkpoint against its committed baseline.
demo: $(VENV)/.demo
	$(GATE) --kb-model=reference --junitxml=kbrel-report/junit.xml

# The same gate on three candidates: two regressions that accuracy misses, and one quantisation that is fine.
demo-candidates: $(VENV)/.demo
	-$(GATE) --kb-model=reference:overconfident --kb-output-path=kbrel-report-overconfident
	-$(GATE) --kb-model=reference:gullible --kb-output-path=kbrel-report-gullible
	$(GATE) --kb-model=reference:int4 --kb-output-path=kbrel-report-int4

# A process a core, one thread each.
test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests -n auto

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.lint
	$(BIN)/mypy

check: lint types test

wheel: $(VENV)/.test
	rm -rf dist
	$(BIN)/python -m hatchling build -t wheel

clean:
	rm -rf $(VENV) dist build kbrel-report*

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e ".[all]"
	touch $@

# The pip that comes with Python 3.11 does not know dependency groups.
$(VENV)/.test: $(VENV)/.demo
	$(PIP) install "pip>=25.1"
	$(PIP) install -c constraints.txt -e ".[all,recipe]" --group test
	touch $@

$(VENV)/.lint: $(VENV)/.test
	$(PIP) install -c constraints.txt --group lint
	touch $@
