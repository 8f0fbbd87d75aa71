# Set-up happens by itself: every target builds what it needs in .venv.
# PYTHON must be 3.11 or newer. The pinned CPU build of torch is for 3.11; with another
# version pip may download CUDA builds of several gigabytes.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: help demo quick test nightly style lint bench docs picture clean

# Both processes run one thread each; the tests of one file stay together, so that they share its fixtures.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder \
	--junitxml build/tests/$@.xml
# What a change of the instrument breaks first. Paths, not markers: a marker pays for collecting everything.
QUICK := src/isoscope/geometry src/isoscope/stats src/isoscope/measures \
	tests/test_layers.py tests/results tests/geometry $(filter-out %_spoken.py,$(wildcard tests/show/test_sentences*.py)) \
	tests/laws/test_measure_laws.py tests/laws/test_record_laws.py tests/laws/test_attention_laws.py \
	tests/models/test_tap.py tests/models/test_blocks.py

help:  ## list the targets
	@grep -E '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: .venv/.runtime  ## train a small model and watch its geometry change: a run, a table, a page
	$(BIN)/isoscope demo --out runs/demo

quick: .venv/.dev  ## the tests to run after every edit, in less than a minute
	$(PYTEST) -p tests.light $(QUICK)

test: style  ## every test that decides whether a change is right; style first, types among the tests
	$(PYTEST)

test-geometry test-stats test-measures: LAWS := tests/laws
test-%: .venv/.dev  ## the tests of one area: make test-kernels, make test-report …
	$(PYTEST) $(wildcard tests/$* src/isoscope/$*) $(LAWS)

nightly: .venv/.dev  ## the long grids that `make test` leaves out
	$(PYTEST) -m nightly

style: .venv/.dev  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style  ## ruff and mypy --strict
	$(BIN)/mypy

bench: .venv/.dev  ## speeds, as ratios measured in one run
	@for bench in bench/*.py; do echo "$$bench"; $(BIN)/python $$bench || exit 1; done

docs: .venv/.dev  ## build the documentation as a site, build/site/index.html
	$(BIN)/python docs/measures.py
	$(BIN)/python docs/packages.py
	$(BIN)/python -m sphinx -q -W --keep-going docs build/site

picture: .venv/.dev demo  ## make the README's picture anew, from the demo
	$(BIN)/python docs/picture.py

clean:  ## remove what make and the tests built
	rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "isoscope needs Python 3.11 or newer; set PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.runtime: .venv/.created pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

.venv/.dev: .venv/.created pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@ .venv/.runtime
