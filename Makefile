# Every target sets itself up: .venv is created and filled from pyproject.toml when that has changed.
# PYTHON chooses the interpreter, DEVICE a device (auto, cuda:0, sim:mini, cpu), PAPER a paper.

PYTHON ?= python3
DEVICE ?= auto
PAPER ?= zhang2011
VENV := .venv
BIN := $(VENV)/bin
PAPERS := feinbube2010 tanaka2011 zhang2011 fitness_schemes brodtkorb_part1
SETUP := $(PYTHON) scripts/setup.py --venv $(VENV)

.DEFAULT_GOAL := help
.PHONY: compare docs site help ablation papers test test-full test-gpu test-lowest wheel lint setup setup-dev verdict clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

ablation: setup ## run configs/ablation.yaml on the first GPU, else in the simulator; tables and figures
	$(BIN)/nqbench run configs/ablation.yaml --device $(DEVICE)

verdict: setup ## the main claims of one paper (PAPER=zhang2011): what recorded GPU runs say, then a run on the first GPU or simulator beside them
	$(BIN)/nqbench claims --paper $(PAPER)
	@# 1: some points failed, which a paper's own findings may be among; the output says which.
	$(BIN)/nqbench reproduce $(PAPER) --device $(DEVICE) || [ $$? -eq 1 ]

papers: setup ## the papers' tables, figures, verdicts and effects from results/; with DEVICE=..., run them first
ifneq ($(origin DEVICE),file)
	$(BIN)/nqbench reproduce $(PAPERS) --device $(DEVICE) || [ $$? -eq 1 ]
endif
	$(BIN)/nqbench reproduce $(PAPERS) --recorded
	$(BIN)/nqbench claims --matrix || [ $$? -eq 1 ]  # 1: no run with times

compare: setup ## compare runs: make compare RUNS="results/local/A/x results/local/B/x"; plots/local/compare
	@test -n "$(RUNS)" || { echo 'make compare: say which runs, e.g. RUNS="results/local/sim-mini/quick results/local/sim-sm_75/quick"' >&2; exit 2; }
	$(BIN)/nqbench compare $(RUNS) --out plots/local/compare

site: setup ## plots/site: linked pages of every run under results/reference; open plots/site/index.html
	$(BIN)/nqbench report --site

test: lint ## lint, then pytest on all cores; all but the slow sweeps
	$(BIN)/pytest -q -n auto --dist worksteal -m "not full"

test-full: lint ## the same with every combination of the factor space
	$(BIN)/pytest -q -n auto --dist worksteal -m "full or not full"

test-lowest: ## tests with the lowest version of each package that pyproject.toml allows
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/pip install -q uv
	$(VENV)-lowest/bin/uv pip install -q -p $(VENV)-lowest --resolution lowest-direct -e '.[cluster,cub]' 'cuda-bindings>=13' \
	  'pytest>=8' 'pytest-timeout>=2.3' 'pytest-xdist>=3.6' 'hypothesis>=6.100' 'jsonschema>=4.21' \
	  'pyparsing>=3.2,<3.3' # of matplotlib, whose 3.9 uses names that are deprecated later: a warning is an error
	$(VENV)-lowest/bin/pytest -q -n auto -o filterwarnings=default \
	  $(addprefix tests/,analysis cli cluster compiler count devices doctor examples \
    interchange measure papers runs simulator study system verify workloads)

test-gpu: setup-dev ## the tests that need a GPU
	$(BIN)/pytest -q -rs tests/gpu

wheel: setup-dev ## build the wheel, install it in an empty environment, run it in an empty folder
	$(BIN)/python scripts/check_wheel.py

docs: setup-dev ## write docs/reference, run docs/notebooks, build all pages in docs/_build/html
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/paper_tables.py
	$(BIN)/python scripts/outputs.py
	$(BIN)/python scripts/notebooks.py
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html

lint: setup-dev ## ruff check, ruff format --check, clang-format, mypy --strict, import contracts, no large file
	@git ls-files -z -- ':!:results' 2>/dev/null | xargs -0 -r wc -c | awk '$$1 > 1000000 && $$2 != "total" { \
	  print "lint: " $$2 " has over 1 MB: leave it out of git, or put it under results/"; bad = 1 } END { exit bad }'
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $$(git ls-files '*.cu' '*.cuh')
	$(BIN)/mypy
	$(BIN)/mypy --strict scripts/*.py docs/conf.py
	$(BIN)/lint-imports

setup: ## create or update .venv
	@$(SETUP)

setup-dev:
	@$(SETUP) --dev

clean: ## remove .venv and caches; results and plots stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
