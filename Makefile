# Every verb works alone on a bare machine with Python 3.11 or newer and make: the first one to run
# builds .venv, and builds it again when pyproject.toml changes. What only tests need comes with the first verb of theirs.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell for p in python3.11 python3; do \
            $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
BIN    := .venv/bin
STAMP  := .venv/installed-for
TOOLS  := .venv/tools-installed-for
ARGS   ?=

.PHONY: help demo quick test slow kafka foreign check bench site site-tools clean debian-packages

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

demo: $(STAMP)  ## the newest design keeps every guarantee; the 2013 one loses an acknowledged write
	@echo '$$ insync check kip-966 | tail -n 1'
	@$(BIN)/insync check kip-966 | tail -n 1
	@echo '$$ insync check kafka-0.8 --property acked-survives | tail -n 1'
	@code=0; $(BIN)/insync check kafka-0.8 --property acked-survives | tail -n 1 || code=$$?; \
	if [ $$code -ne 12 ]; then \
		echo "make demo: kafka-0.8 must violate acked-survives (exit code 12), but the exit code was $$code" >&2; \
		exit 1; \
	fi
	@echo
	@echo "Today's design, kip-966, keeps what it promises in every state within these bounds."
	@echo 'The design of 2013, kafka-0.8, loses an acknowledged record; $(BIN)/insync show jepsen-2013 tells how.'

# A process that has no tests left takes some of the other's; until then it does whole files, with one JVM and one browser.
WORKERS := -n 2 --dist worksteal

# What needs no process, socket, browser, JVM or solver, and no exploration of seconds; tests/support/guard.py holds the markers of processes and sockets.
QUICK := not (slow or long or explores or solver or processes or sockets or browser or spark or rumur or tlc or kafka)

quick: $(TOOLS)  ## the tests of the inner loop, half a minute: language, cores, log, wire, histories, architecture
	@$(BIN)/python -m pytest $(WORKERS) -m '$(QUICK)' $(ARGS)

test: $(TOOLS) debian-packages  ## the tests, two at a time; ARGS="-k name" goes to pytest
	@$(BIN)/python -m pytest $(WORKERS) $(ARGS)

slow: $(TOOLS) debian-packages  ## the tests that take minutes each, which `make test` leaves out
	@$(BIN)/python -m pytest $(WORKERS) -m slow $(ARGS)

kafka: $(STAMP)  ## Apache Kafka's own classes, fetched, built, and held to the smallest model
	@$(BIN)/insync kafka fetch
	@$(BIN)/insync conform --sut kafka --replicas 2 --crashes 0 $(ARGS)

foreign: $(TOOLS)  ## others' test suites against our brokers, each fetched once; make foreign-franz-go for one
	@$(BIN)/python -m tests.foreign $(ARGS)

foreign-%: $(TOOLS)
	@$(BIN)/python -m tests.foreign $* $(ARGS)

check: $(TOOLS)  ## formatting, lint, types, contracts on imports, dead code, and JavaScript, all of them even when one complains
	@bad=0; \
	run() { echo "\$$ $$*"; $(BIN)/python -m "$$@" || bad=1; }; \
	run ruff check .; \
	run ruff format --check .; \
	run mypy; \
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 run pyright; \
	run tests.support.import_graph; \
	run vulture; \
	run tests.support.javascript; \
	exit $$bad

bench: $(TOOLS)  ## every measurement in bench/
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]' </dev/null
	@failed=(); \
	for script in $$(grep -l __main__ bench/*.py); do echo "\$$ python $$script"; $(BIN)/python $$script $(ARGS) || failed+=($$script); done; \
	[ $${#failed[@]} -eq 0 ] || { echo "make bench: no result of $${failed[*]}; each has said why" >&2; exit 1; }

site: site-tools  ## all that there is to read, as one site in build/site, with a report; a broken link fails
	@$(BIN)/python -m docs.site.build $(ARGS)

SITE_STAMP := .venv/installed-site-tools

# MkDocs comes with the first `make site` (and with .ci/run), so that no other verb waits for it.
site-tools: $(SITE_STAMP)

$(SITE_STAMP): $(TOOLS)
	@echo 'Installing what builds the site into .venv ...'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[site]' </dev/null
	@touch $@

clean:  ## remove .venv, caches and built packages
	rm -rf .venv node_modules build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp names the folder it was made for: an editable install points at its checkout, so a checkout
# that was copied or moved together with its .venv installs itself again.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif
ifneq ($(shell cat $(TOOLS) 2>/dev/null),$(CURDIR))
.PHONY: $(TOOLS)
endif

# Debian splits `venv` from Python. Where we may, we install it; where not, we say what is missing.
$(STAMP): pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo 'insync needs Python 3.11 or newer, and found none on the PATH' >&2; exit 1; }
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
			if [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then \
				export DEBIAN_FRONTEND=noninteractive; \
				version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
				echo "Installing the Debian package python$$version-venv ..."; \
				apt-get update -qq </dev/null || true; \
				apt-get install -y -qq --no-install-recommends python$$version-venv </dev/null >/dev/null \
					|| apt-get install -y -qq --no-install-recommends python3-venv </dev/null >/dev/null; \
			else \
				echo 'Python has no venv module here; install it (Debian: apt-get install python3-venv)' >&2; \
				exit 1; \
			fi; \
		fi; \
		echo 'Creating .venv ...'; \
		$(PYTHON) -m venv --clear .venv; \
	fi
	@echo 'Installing insync into .venv ...'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[audit,experiment,certify]' </dev/null
	@printf '%s\n' '$(CURDIR)' > $@

$(TOOLS): $(STAMP)
	@echo 'Installing what tests and checks need into .venv ...'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' </dev/null
	@printf '%s\n' '$(CURDIR)' > $@

# rumur is a model checker that shares no code with ours, and gcc (with the C library's headers) compiles what it
# generates; kcat is a client of Kafka's; chromium opens the pages; dot, of graphviz, draws graphs; Spark runs on Java; ip
# makes the experiment's networks. Tests that need them skip visibly without, and fail under CI.
PACKAGES := rumur gcc libc6-dev kcat chromium graphviz openjdk-17-jre-headless iproute2

debian-packages:
	@have() { for p; do command -v $$p >/dev/null || return 1; done; }; \
	have rumur kcat chromium dot java ip && echo '#include <stdio.h>' | gcc -E - >/dev/null 2>&1 && exit 0; \
	if [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then \
		echo 'Installing the Debian packages $(PACKAGES) ...'; \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq </dev/null || true; \
		apt-get install -y -qq --no-install-recommends $(PACKAGES) </dev/null >/dev/null && exit 0; \
	fi; \
	echo 'Note: one of $(PACKAGES) is missing (Debian: apt-get install $(PACKAGES)); tests that need it skip' >&2
