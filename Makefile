# make run    installs what is missing, starts the server, prints its address
# make test   installs what is missing, runs every test, with a real MongoDB
# make sdk SDK=0.26.0   the tests of RAGFlow with that version of its SDK
# make aegra  the tests of aegra (aegra.json), with PostgreSQL and Redis, on Python 3.12 or 3.13
# make check  format, lint, types        make format  mends what can be mended
# make bench  writes docs/figures.md     make chaos   MongoDB killed for minutes on end
# make constraints  pins the newest releases    make clean   removes what was installed

PYTHON ?= python3
PORT ?= 2024
# Files of tests that run side by side: most tests wait for something. In the order of their
# folders, the long ones of e2e come first, and no worker is left alone with one.
JOBS ?= 3
VENV ?= $(if $(filter-out python3,$(PYTHON)),.venv-$(notdir $(PYTHON)),.venv)
BIN := $(VENV)/bin

# Without what Python keeps of its compiling, each start of a command takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test sdk aegra databases browser check format bench chaos constraints clean

run: $(VENV)/run.stamp
	@exec $(BIN)/chatbot dev --port $(PORT)

test: $(VENV)/dev.stamp browser
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

# Each Python has the SDK that pip chooses for it; this puts another one in front of it.
SDK ?= 0.26.0
sdk: $(VENV)/dev.stamp
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --target $(VENV)/sdk-$(SDK) ragflow-sdk==$(SDK)
	@PYTHONPATH=$(VENV)/sdk-$(SDK) $(BIN)/python -c 'import ragflow_sdk as sdk; print("ragflow-sdk", sdk.__version__)'
	PYTHONPATH=$(VENV)/sdk-$(SDK) $(BIN)/python -m pytest tests/unit/knowledge tests/integration/knowledge -k ragflow

aegra: $(VENV)/dev.stamp databases
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 12))' || \
	  { echo "aegra needs Python 3.12 or 3.13; name one: make aegra PYTHON=python3.13" >&2; exit 2; }
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[aegra]'
	$(BIN)/python -m pytest tests/aegra $(ARGS)

# aegra is tested over a real PostgreSQL and Redis. Where they are missing and may be installed, they are.
databases:
	@{ ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null; } && \
	  command -v redis-server >/dev/null || \
	  { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
	    echo "Installing PostgreSQL and Redis for the tests of aegra ..." && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql redis-server >/dev/null; } || \
	  echo "PostgreSQL or Redis is missing: the tests of aegra will fail. Install them." >&2

# The page is tested in a real Chromium, with Chinese on it. What is missing is installed, where that may be.
browser:
	@{ command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	    command -v google-chrome >/dev/null || [ -n "$$CHROMIUM" ]; } && \
	  fc-list :lang=zh 2>/dev/null | grep -q . || \
	  { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
	    echo "Installing Chromium and a Chinese font for the tests of the page ..." && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fontconfig fonts-wqy-microhei >/dev/null; } || \
	  echo "Chromium or a Chinese font is missing: the tests of the page will fail. Install them, or name Chromium in CHROMIUM." >&2

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec compose.yaml compose.aegra.yaml

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# ARGS names parts; all of them write docs/figures.md.
bench: $(VENV)/dev.stamp $(VENV)-bench/stamp
	$(BIN)/python -m benchmarks $(ARGS)

chaos: $(VENV)/dev.stamp
	CHAOS_SECONDS=$(or $(CHAOS_SECONDS),300) $(BIN)/python -m pytest tests -k chaos --timeout 3600

# One file for every Python: markers tell where they differ.
constraints: | $(BIN)/uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --no-annotate --no-header --quiet --upgrade -o constraints.txt

clean:
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis

# uv lives inside the environment: nothing is asked of the machine but Python, make and git.
$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "Python 3.11, 3.12 or 3.13 is needed; name one: make PYTHON=python3.12 ..." >&2; exit 2; }
	@echo "Preparing $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python's venv module is missing: install it (on Debian and Ubuntu: apt-get install python3-venv)" >&2; exit 2; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/run.stamp: pyproject.toml constraints.txt | $(BIN)/uv
	@echo "Installing the chatbot and its server ..."
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[server]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt | $(BIN)/uv
	@echo "Installing the chatbot and what its tests need ..."
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev,anthropic,google]'
	@touch $@ $(VENV)/run.stamp

# What the benchmarks compare with wants other versions of the same packages.
$(VENV)-bench/stamp: pyproject.toml | $(BIN)/uv
	@echo "Installing what the benchmarks compare with ..."
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)-bench
	@$(BIN)/uv pip install --quiet --python $(VENV)-bench/bin/python --group bench
	@touch $@
