# Everything a person types here: 'make' lists it. Works in a folder with spaces; nothing needs to be installed before.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL: # apt, the environment and the engine take one at a time

CELL ?= 2.15-cu12
BIN := .venv/bin

.PHONY: help setup env image rebuild browser test test-unit lint render lock bench clean gc

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
	  printf '  make %-10s %s\n' "$$target" "$$text"; done
	@echo '  CELL=$(CELL) names the environment, e.g. make image CELL=...'

setup: ## install and start what is missing on this machine: Python, Docker Engine with buildx
	@scripts/setup

env: $(BIN)/ready ## make or update .venv, the project's own Python environment

$(BIN)/ready: uv.lock pyproject.toml scripts/env
	@scripts/env

image: setup env ## set up, then build and verify the image of CELL; ends 0 without a GPU if all else passed
	@scripts/image '$(CELL)'

rebuild: env ## archive the image of CELL and build it again from the archive alone: the same bits? (make image first)
	@scripts/rebuild '$(CELL)'

browser: ## install Chromium if there is no browser that the tests of the matrix page can drive
	@scripts/setup browser

test: env browser ## run all tests (make image first: they look into the image)
	@$(BIN)/pytest

test-unit: env ## run the tests that need neither an engine, an image nor a browser
	@$(BIN)/pytest -m 'not engine and not image and not browser'

lint: env ## check style, types, Dockerfiles, workflows, and that regenerating changes nothing
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/mypy bench/*.py verifier templates/tools/trim.py
	@$(BIN)/shellcheck -x scripts/setup scripts/env scripts/image scripts/rebuild .ci/run .github/prepare templates/tools/*.sh
	@$(BIN)/actionlint -shellcheck=$(BIN)/shellcheck
	@$(BIN)/zizmor --offline --quiet --no-progress --persona=pedantic .github
	@$(BIN)/hadolint images/*/Dockerfile
	@$(BIN)/tfenv lock --all --check
	@$(BIN)/tfenv render --check
	@$(BIN)/tfenv page --check
	@$(BIN)/tfenv troubleshooting --check

render: env ## write the Dockerfiles and the pages again from matrix.yaml, facts, locks, reports, rules and templates
	@$(BIN)/tfenv render
	@$(BIN)/tfenv page
	@$(BIN)/tfenv troubleshooting

lock: env ## lock CELL: resolve what has no pin yet, keep the rest (tfenv lock --upgrade moves pins)
	@$(BIN)/tfenv lock '$(CELL)'

bench: setup env ## measure builds and commands against a plain Dockerfile (needs the network, 20 GB, half an hour)
	@$(BIN)/python bench/run.py '$(CELL)'

clean: ## remove .venv and caches from this folder; images and the store stay
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	@find . -name __pycache__ -prune -exec rm -rf {} +

gc: env ## free the store of downloads and builds that nothing needs any more
	@$(BIN)/tfenv gc
