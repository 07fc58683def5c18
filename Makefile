# Each target creates its requirements: the virtual environment, the npm tools, a local stack.

PYTHON ?= python3
BIN := .venv/bin
export SUPABASE_TELEMETRY_DISABLED := 1
# The tests start hundreds of Python processes. Without bytecode, each process would compile the project again.
unexport PYTHONDONTWRITEBYTECODE
# These would change the interpreter, or the environment that packages are installed into.
unexport PYTHONHOME PYTHONPATH PYTHONOPTIMIZE PYTHONWARNINGS PIP_USER PIP_TARGET PIP_PREFIX UV_PYTHON UV_SYSTEM_PYTHON
# An environment whose Python was upgraded or removed is made again. Python itself is asked only where the folder of the
# packages does not have its version.
$(shell for venv in .venv .venv-frameworks; do \
  test -e $$venv && ! test -d $$venv/lib/$$(basename $$(readlink -f $$venv/bin/python))/site-packages/certifi \
    && ! $$venv/bin/python -c 'import certifi' 2>/dev/null && rm -f $$venv/ready*; done)

.PHONY: help demo serve test test-postgres test-long mutants docs links check lint types format generated constraints migration package sdk sbom bench eval calibrate compare clean

help:
	@echo "make demo       ingests documents and answers questions with citations (on a local stack of its own, without keys;"
	@echo "                RAG_DEMO_MODELS=environment: by the models that your shell's settings name, which may cost)"
	@echo "make serve      the stack on port 54321, or the next free one, until Ctrl-C (PORT=54331: that port); it uses the"
	@echo "                settings and keys of your shell (docs/configuration.md)"
	@echo "make test       the tests, on Postgres 18; run them before every commit"
	@echo "make test-postgres      the tests that depend on the version of Postgres, on 16 and 18"
	@echo "                (INSTALLATION=/usr/lib/postgresql/17: on the Postgres of that folder instead)"
	@echo "make test-long  the tests that take minutes: random kills, large snapshots, the fuzzer at full width"
	@echo "make mutants    plants defects one at a time, and checks that a test fails (an hour;"
	@echo "                MUTANTS='--area graph' for one area, '--help' for the options)"
	@echo "make docs       build/docs, the documentation as a site, with its links and anchors checked"
	@echo "make links      requests every external link of the documentation"
	@echo "make check      format, lint, types, documentation, tests: what CI runs"
	@echo "make generated  writes all generated files from their sources (CONTRIBUTING.md); tests compare them"
	@echo "make constraints        constraints.txt and the SDK's frameworks.txt, with hashes (UPGRADE=name upgrades a package)"
	@echo "make migration name=x   draft the migration from supabase/migrations to sql/"
	@echo "make package    build/lambda, the folder that osls packages (docs/aws-lambda.md)"
	@echo "make sdk        build/sdk, the SDKs of the platform API as they are installed: a wheel, an npm tarball"
	@echo "make sbom       build/sbom, the Python and npm packages in CycloneDX format"
	@echo "make bench      speed, cold starts, ingestion, matching among 100,000 chunks (bench/results.jsonl;"
	@echo "                an hour; PARTS=match for one of http cold chat cost match hybrid costly work put post capacity"
	@echo "                request peers)"
	@echo "make eval DATA=dir      quality of retrieval and accuracy of confidence, on labelled sets"
	@echo "make compare DATA=dir CHANGE='similarity_share=0.5'    the effect of a change, with intervals"
	@echo "make calibrate [DATA=dir] [DATABASE=url]  fits confidence to your questions, or to the product's"

demo: .venv/ready node_modules/ready
	@$(BIN)/python -m local demo

# Only the command line of make sets PORT. The environment variable PORT may belong to another program.
PORT :=
serve: .venv/ready node_modules/ready
	@$(BIN)/python -m local serve $(PORT:%=--port %)

# One process runs all tests of a module, so that they share what the module creates. Four processes keep two cores
# busy: a test often waits for its servers.
PYTEST := $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

test: .venv/ready-dev node_modules/ready .venv-frameworks/ready
	@$(PYTEST)

# Only the command line of make sets INSTALLATION.
INSTALLATION :=
test-postgres: .venv/ready-dev node_modules/ready
	@set -e; for server in $(if $(INSTALLATION),--installation=$(INSTALLATION),--postgres=16 --postgres=18); do \
	  $(PYTEST) -m "postgres and not long" $$server; done

# The test of hostile users runs alone, for an hour, because it compares response times.
HOSTILE := tests/isolation/test_hostile_users.py

test-long: .venv/ready-dev node_modules/ready
	@$(PYTEST) -m long --ignore $(HOSTILE)
	@$(BIN)/python -m pytest -m long $(HOSTILE)

mutants: .venv/ready-dev node_modules/ready
	@$(BIN)/python -m tests.mutation --jobs 2 $(MUTANTS)

docs: .venv/ready-dev
	@# Without this variable, the theme prints a notice about MkDocs 2 with each build.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

links:
	@grep -rhoE '\]\(https?://[^)#]+' README.md CONTRIBUTING.md docs sdk/*/README.md | cut -c3- | sort -u \
	  | xargs -n 1 curl --silent --show-error --fail --location --retry 3 --max-time 30 --output /dev/null

check:
	@$(MAKE) --jobs 2 .venv/ready-dev node_modules/ready .venv-frameworks/ready
	@$(MAKE) --jobs 2 --output-sync lint types docs
	$(PYTEST)

lint: .venv/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo --no-cache
	@# vulture reports the fields of wire models as unused variables. Its exit status after a report is 3.
	report=$$($(BIN)/vulture); test $$? -eq 3 && ! echo "$$report" | grep -vE ': unused (variable|attribute) '
	$(BIN)/hadolint Dockerfile
	$(BIN)/zizmor --offline --quiet --persona=pedantic .github

types: .venv/ready-dev .venv-frameworks/ready
	$(BIN)/mypy
	MYPYPATH=sdk/python/tests $(BIN)/mypy --python-executable .venv-frameworks/bin/python \
	  sdk/python/src/mnemosyne/langchain.py sdk/python/src/mnemosyne/llama_index.py sdk/python/tests/*.py

format: .venv/ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generated: .venv/ready-dev
	@$(BIN)/python -m local.tools generate

constraints: .venv/ready-dev
	@set -e; compile() { $(BIN)/uv pip compile --quiet --system-certs --universal --python-version 3.11 --generate-hashes \
	    --no-annotate --custom-compile-command "make constraints" $(UPGRADE:%=--upgrade-package %) --output-file "$$@"; }; \
	  compile constraints.txt requirements-dev.txt; compile sdk/python/frameworks.txt sdk/python/frameworks.in

migration: .venv/ready node_modules/ready
	$(BIN)/python -m local.tools migration $(name)

package: .venv/ready node_modules/ready
	@$(BIN)/python -m local.tools.lambda_package

sdk: .venv/ready-dev node_modules/ready
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir build/sdk sdk/python
	@$(BIN)/python -m local.tools.build_typescript_sdk

sbom: .venv/ready-dev
	@mkdir -p build/sbom
	@$(BIN)/cyclonedx-py requirements --output-file build/sbom/python.json constraints.txt
	@npm sbom --package-lock-only --sbom-format cyclonedx >build/sbom/npm.json

bench: .venv/ready-dev node_modules/ready
	@$(BIN)/python -m bench $(PARTS)

calibrate: .venv/ready-dev node_modules/ready
	@$(BIN)/python -m local calibrate $(DATA) $(BUDGET:%=--budget %) $(DATABASE:%=--database "%")

eval: .venv/ready-dev node_modules/ready
	@test -n "$(DATA)" || { echo "make eval DATA=folder; the folder's format: shared/calibration/labelled_sets.py"; exit 2; }
	$(BIN)/python -m bench.evaluate $(DATA)

compare: .venv/ready-dev node_modules/ready
	@test -n "$(DATA)" -a -n "$(CHANGE)" || { echo "make compare DATA=folder CHANGE='NAME=VALUE NAME=VALUE'"; exit 2; }
	@$(BIN)/python -m bench.compare $(DATA) $(CHANGE:%=--change %)

clean:
	-$(BIN)/python -m local down --remove
	rm -rf .venv .venv-frameworks .venv-peers node_modules .local build

# A Python older than 3.11 cannot run install.py.
INSTALL := $(PYTHON) local/tools/install.py
.venv/ready: requirements.txt requirements-parsers.txt requirements-sources.txt requirements-server.txt requirements-local.txt constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "error: Python 3.11 or newer is needed, and $(PYTHON) is missing or older: make PYTHON=python3.12" >&2; exit 1; }
	@echo "installing the Python packages (once) ..."
	@$(INSTALL) .venv --require-hashes -c constraints.txt -r requirements.txt -r requirements-local.txt
	@$(INSTALL) weights
	@touch $@

.venv/ready-dev: .venv/ready requirements-dev.txt
	@echo "installing the test tools (once) ..."
	@$(INSTALL) .venv --require-hashes -c constraints.txt -r requirements-dev.txt
	@touch $@

.venv-frameworks/ready: sdk/python/frameworks.txt | .venv/ready
	@echo "installing LangChain and LlamaIndex for the SDK's tests (once) ..."
	@$(INSTALL) .venv-frameworks --require-hashes -r sdk/python/frameworks.txt
	@touch $@

node_modules/ready: package.json package-lock.json
	@echo "installing the npm tools (once) ..."
	@$(INSTALL) npm
	@touch $@
