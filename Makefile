# Each target makes .venv first, with the versions pinned in constraints.txt.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: install demo test fuzz lint docs bench promises clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check \
		-c constraints.txt -e '.[dev,docs]'
	# On every core, where pip would use one, and without the tests of the packages.
	-$(BIN)/python -m compileall -qq -j 0 -x '/tests?/|/pip/' .venv/lib
	touch $(STAMP)

demo: install
	@$(BIN)/physsm demo

test: install
	scripts/test

fuzz: install
	scripts/fuzz

lint: install
	scripts/check

docs: install
	scripts/docs

bench: install
	$(BIN)/python -m benchmarks

promises: install
	$(BIN)/python -m benchmarks promises

clean:
	rm -rf .venv site build dist .pytest_cache .ruff_cache .xla_cache
