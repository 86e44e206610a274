# Two commands do all set-up: `make up` and `make test`. Everything they install goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NEEDS := redline needs CPython 3.11 or later with venv, and make. On Debian and Ubuntu: sudo apt install python3-venv make

.PHONY: up test check lock clean

up: $(VENV)/.run
	@$(BIN)/redline up

test: $(VENV)/.dev
	@scripts/test

check: $(VENV)/.dev
	@scripts/check

lock: $(VENV)/.dev
	@scripts/lock

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "$(NEEDS)" >&2; exit 1; }
	@echo "making .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "$(NEEDS)" >&2; exit 1; }

$(VENV)/.run: $(VENV)/bin/python requirements/run.txt pyproject.toml
	@echo "installing pinned packages into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	@echo "installing test tools into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@
