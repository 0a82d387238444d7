# make demo    trains, decodes and scores a small translator on the built-in sample corpus
# make quick   the tests that take milliseconds
# make test    format, lint, types, and the tests that every change must pass
# make nightly all tests; EXTRAS=dev,jax,torch adds those of JAX and PyTorch
# make docs    the documentation site, in build/site; a broken link is an error. Its search needs a server:
#              python3 -m http.server --directory build/site
# make wheel   sdist and wheel, in dist/
# All need python3 (3.10 to 3.12) and a package index; they install into .venv.

PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= dev
BIN := $(VENV)/bin

# Bytecode is kept in any case: without it, each process of tests would compile all files of tests again.
unexport PYTHONDONTWRITEBYTECODE

# Files of tests that run side by side; most tests use one core.
JOBS ?= 2
PYTEST := $(BIN)/pytest --numprocesses=$(JOBS) --dist=loadfile

DEMO ?= .demo
RUN := --problem=translate_ende --hparams_set=tiny --output_dir=$(DEMO)/model

.PHONY: demo quick slow test nightly lint docs wheel clean

demo: $(DEMO)/.trained
	$(BIN)/t2t-avg-all $(RUN)
	$(BIN)/t2t-decoder $(RUN) --data_dir=$(DEMO)/data --dataset_split=test --decode_to_file=$(DEMO)/test.de
	@echo
	@echo "corpus and vocabulary   $(DEMO)/data"
	@echo "model and checkpoints   $(DEMO)/model"
	@echo "learning curve          $(DEMO)/model/learning_curve.png"
	@echo "translations            $(DEMO)/test.de"
	@echo "try it yourself         $(BIN)/t2t-decoder $(RUN) --decode_interactive"
	@echo "or serve it             $(BIN)/pip install '.[server]' && $(BIN)/t2t-server --output_dir=$(DEMO)/model"

$(DEMO)/.trained: $(VENV)/.installed
	$(BIN)/t2t-trainer $(RUN) --data_source=sample --data_dir=$(DEMO)/data --local_eval_frequency=200
	touch $@

# Slow tests run in three groups: what TensorFlow leaves in a process adds up to gigabytes. In each, the files that
# take most memory come first, and those that take long before the rest.
most := tests/cli/test_exporter.py tests/system/test_every_model.py
commands := $(most) $(filter-out $(most),$(wildcard tests/system/test_*.py tests/cli/test_*.py tests/cli/*/test_*.py))
models := tests/serving tests/training tests/imports
others := tests/contract tests/decoding
others += $(filter-out tests/system tests/cli $(models) $(others) %/__pycache__ %/conftest.py %.txt,$(wildcard tests/*))

quick: $(VENV)/.installed-$(EXTRAS)
	$(PYTEST) -m "not slow and not nightly" --junitxml=build/junit/quick.xml

slow:
	$(MAKE) --keep-going $(if $(TESTS),slow-TESTS,slow-commands slow-models slow-others)

slow-%: $(VENV)/.installed-$(EXTRAS)
	$(PYTEST) -m "slow and not nightly" --no-loadscope-reorder --junitxml=build/junit/$*.xml $($*)

test:
	$(MAKE) --keep-going lint quick slow

NIGHTLY := $(PYTEST) --hypothesis-profile=nightly --no-loadscope-reorder

nightly:
	$(MAKE) --keep-going lint nightly-quick nightly-commands nightly-models nightly-others

nightly-quick: $(VENV)/.installed-$(EXTRAS)
	$(NIGHTLY) -m "not slow" --junitxml=build/junit/quick.xml

nightly-%: $(VENV)/.installed-$(EXTRAS)
	$(NIGHTLY) -m slow --junitxml=build/junit/$*.xml $($*)

lint: $(VENV)/.installed-$(EXTRAS)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	rm -rf build/typed
	$(BIN)/python setup.py -q build_py --build-lib build/typed
	cp -r tools build/typed
	cd build/typed && $(abspath $(BIN))/mypy --config-file $(CURDIR)/pyproject.toml -p t2t_revival -p tools

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(VENV)/.installed-$(EXTRAS)
	$(BIN)/python -m build

$(VENV)/.installed: setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip setuptools
	$(BIN)/pip install -q -e ".[plots]"
	touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(BIN)/pip install -q -e ".[$*]"
	touch $@

clean:
	rm -rf build dist $(DEMO)
