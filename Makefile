# Everything a person needs: make demo, make test. Nothing here asks a question or needs root;
# ZooKeeper for the tests is installed where that is possible, and the tests say so where not.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TENSORFLOW ?= 2.21.0
OLD_TENSORFLOW ?= 2.15.1
# What is supported: the oldest there is for Python 3.11, each change of Keras, the newest.
SOAK_TENSORFLOWS ?= 2.12.1 2.15.1 2.16.2 2.19.1 2.21.0
EXAMPLE ?= digits
SEEDS ?= 10000
# Most tests wait for processes: more of them at a time than there are cores keep these busy.
TEST_PROCESSES ?= 4
PYTEST_ARGUMENTS ?=
# What one of the test processes has compiled the others read: that is most of what collecting takes.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
TENSORFLOW_VENV := .venvs/tensorflow-$(TENSORFLOW)
OLD_TENSORFLOW_VENV := .venvs/tensorflow-$(OLD_TENSORFLOW)
PIP := -m pip --disable-pip-version-check --quiet
# What downloads for minutes shows how far it is: $(call SHOWN,WHAT) PYTHON $(SHOWN_PIP) ...
SHOWN = @$(PYTHON) packaging/shown_install.py '$(1)'
SHOWN_PIP := -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test soak soak-long unit environments lint docs format schemas simulate bench package lock audit clean system-packages

help:
	@echo "make demo      a real distributed training on this machine, from nothing to its end;"
	@echo "               EXAMPLE=command, digits, keras, multi_worker, parameter_server ..."
	@echo "make test      everything set up, and the tests that a change must pass"
	@echo "make unit      the tests that need neither TensorFlow nor ZooKeeper"
	@echo "make soak      hours: all tests, with all cases and the full numbers"
	@echo "make soak-long two hours of kills: what grows, and how fast"
	@echo "make simulate  SEEDS=10000: random histories against the core"
	@echo "make bench     the benchmarks, in 20 minutes; build/bench.json"
	@echo "make package   ARTIFACT_URL=https://...: the DC/OS package, to be served from there"
	@echo "make lock      requirements/*.lock anew, after setup.cfg; UPGRADE=--upgrade: the newest"
	@echo "make audit     known vulnerabilities of what is locked"
	@echo "make docs      the documentation as a site, build/docs; SOURCE_URL=... for links to files"
	@echo "make lint      ruff, mypy, import-linter, generated files, the syntax of JavaScript, docs"
	@echo "make format    what ruff can mend, and the generated files"

# What is installed is what requirements/ says, byte for byte: a package that was changed since is refused
# (docs/decisions/0033-what-is-installed.md).
LOCKED := install --require-hashes --no-deps --no-build-isolation --use-pep517 --requirement
OWN := install --no-deps --no-build-isolation --use-pep517

$(VENV)/.installed: setup.cfg pyproject.toml vendor/http-parser/pyproject.toml requirements/build.lock requirements/runtime.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; set PYTHON=... ($(PYTHON) is older)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) $(LOCKED) requirements/build.lock
	$(call SHOWN,The packages of dcos-tensorflow) $(BIN)/python $(SHOWN_PIP) $(LOCKED) requirements/runtime.lock
	@# An older pip, as Debian's, else records no files of what comes without a wheel: no package from these.
	$(BIN)/python $(PIP) $(OWN) ./vendor/http-parser --editable .
	$(BIN)/python $(PIP) check
	@touch $@

# What tests and checks need beside that. It is most of the download: a first training waits for none of it.
$(VENV)/.checks: $(VENV)/.installed requirements/checks.lock
	$(call SHOWN,What the tests need) $(BIN)/python $(SHOWN_PIP) $(LOCKED) requirements/checks.lock
	$(BIN)/python $(PIP) check
	@touch $@

# After a change of what setup.cfg asks for, and now and then for the newest: UPGRADE=--upgrade.
# uv knows the hashes for every Python and platform; it is installed for this alone.
lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/python $(PIP) install uv
	build/lock/bin/uv pip compile requirements/build.in -o requirements/build.lock $(UV)
	build/lock/bin/uv pip compile setup.cfg -o requirements/runtime.lock -c requirements/build.lock $(UV)
	build/lock/bin/uv pip compile setup.cfg --extra test --extra docs -o requirements/checks.lock -c requirements/runtime.lock $(UV)

# Known vulnerabilities of what is locked. It asks the network: lint says so where no server answers, and goes on.
AUDIT := $(BIN)/python packaging/audit.py build/audit/bin/pip-audit requirements/runtime.lock

build/audit/bin/pip-audit:
	@$(PYTHON) -m venv build/audit
	@# An offline user does not wait for it each time.
	@build/audit/bin/python $(PIP) --retries 0 install pip-audit 2> build/audit/log || true

audit: $(VENV)/.checks build/audit/bin/pip-audit
	$(AUDIT) --needed

UPGRADE ?=
# http-parser is vendor/http-parser.
UV := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-package http-parser $(UPGRADE)

# Each TensorFlow version has an environment of its own: their requirements exclude each other,
# and the scheduler's environment must hold none of them (docs/decisions/0004-one-environment-per-tensorflow.md).
.venvs/tensorflow-%/.installed:
	@mkdir -p .venvs
	$(PYTHON) -m venv .venvs/tensorflow-$*
	$(call SHOWN,TensorFlow $*) .venvs/tensorflow-$*/bin/python $(SHOWN_PIP) install \
	  'tensorflow-cpu==$*' tensorboard scikit-learn
	@touch $@

# Keras 2, for model.fit on several tasks: up to 2.15 it is TensorFlow's own. What tf_keras requires
# is left out: a whole TensorFlow, which would be installed over this one.
.PRECIOUS: .venvs/tensorflow-%/.installed
.venvs/tensorflow-%/.keras: .venvs/tensorflow-%/.installed
	case $* in 2.1[2-5].*) ;; *) \
	  .venvs/tensorflow-$*/bin/python $(PIP) install --no-deps 'tf_keras==$(basename $*).*';; esac
	@touch $@

# TensorBoard without TensorFlow: it reads the tasks' summaries, and must not need their environment.
.venvs/tensorboard/.installed:
	@mkdir -p .venvs
	$(PYTHON) -m venv .venvs/tensorboard
	.venvs/tensorboard/bin/python $(PIP) install tensorboard
	@touch $@

demo: $(VENV)/.installed $(TENSORFLOW_VENV)/.keras
	@$(BIN)/dcos-tensorflow run examples/$(EXAMPLE)/options.json --yes \
	  --set service.python=$(CURDIR)/$(TENSORFLOW_VENV)

environments: $(VENV)/.checks $(TENSORFLOW_VENV)/.keras $(OLD_TENSORFLOW_VENV)/.keras .venvs/tensorboard/.installed system-packages
	@# Else each of the many processes that begin at once compiles them anew.
	@$(BIN)/python -m compileall -q framework

PYTEST := $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES)
# A file's tests share what is costly to start.
BY_FILE := --dist loadfile --no-loadscope-reorder

test: environments
	$(PYTEST) $(BY_FILE) $(PYTEST_ARGUMENTS)

# The same tests with the numbers that are promised, and the cases that "make test" leaves out.
soak: export SEEDS := $(SEEDS)
soak: export FIRST_SEED ?= $(shell date +%s)
soak: export KILLS ?= 500
soak: export LOSSES ?= 20
soak: export CUTS ?= 200
soak: export FIGHTS ?= 200
soak: environments $(SOAK_TENSORFLOWS:%=.venvs/tensorflow-%/.keras)
	$(PYTEST) $(BY_FILE) -m "" $(PYTEST_ARGUMENTS)

# Two hours with a kill every 20 s: the slopes of memory, descriptors, threads, files and nodes.
soak-long: export LONG_RUN_SECONDS ?= 7200
soak-long: environments
	$(BIN)/python -m pytest -s -m soak tests/end_to_end/kills/test_long_run.py $(PYTEST_ARGUMENTS)

unit: $(VENV)/.checks
	$(PYTEST) tests/unit $(PYTEST_ARGUMENTS)

simulate: $(VENV)/.checks
	$(BIN)/python tests/simulation/simulate.py $(SEEDS)

lint: $(VENV)/.checks build/audit/bin/pip-audit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m dcos_tensorflow.options.schema --check
	$(BIN)/python -m dcos_tensorflow.package.template --check
	$(BIN)/python -m dcos_tensorflow.deploy.settings_schema --check
	$(BIN)/python -m dcos_tensorflow.api.openapi --check
	$(BIN)/python tests/unit/core/golden/tf_config/generate.py --check
	$(AUDIT)
	@# As a file in its argument node would not read a module to its end.
	if command -v node > /dev/null; then \
	  for module in framework/dcos_tensorflow/api/dashboard/*.js framework/dcos_tensorflow/api/dashboard/*/*.js; do node --input-type=module --check < $$module || exit 1; done; fi
	$(MAKE) --no-print-directory docs

# A link that leads nowhere, a page without a link to it: every warning is an error.
docs: $(VENV)/.checks
	$(BIN)/python -m sphinx --quiet --fail-on-warning --fresh-env --jobs auto docs build/docs

format: $(VENV)/.checks
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m dcos_tensorflow.options.schema
	$(BIN)/python -m dcos_tensorflow.package.template
	$(BIN)/python -m dcos_tensorflow.deploy.settings_schema
	$(BIN)/python -m dcos_tensorflow.api.openapi

schemas: $(VENV)/.installed
	$(BIN)/python -m dcos_tensorflow.options.schema
	$(BIN)/python -m dcos_tensorflow.package.template
	$(BIN)/python -m dcos_tensorflow.deploy.settings_schema
	$(BIN)/python -m dcos_tensorflow.api.openapi

# 20 minutes. benchmarks/report.py writes what it finds into docs/performance.md.
bench: $(VENV)/.checks $(TENSORFLOW_VENV)/.keras system-packages
	$(BIN)/python -m benchmarks.bench

# Everything that a cluster needs of the package lies in dist/package afterwards (docs/package.md).
# Building reads requirements with a package that comes with those of the tests.
package: $(VENV)/.checks
	@test -n "$(ARTIFACT_URL)" \
	  || { echo "Where will the files be served from? make package ARTIFACT_URL=https://..."; exit 1; }
	$(BIN)/python packaging/build.py --artifact-url "$(ARTIFACT_URL)" $(PACKAGE_ARGUMENTS)

# The tests start a real ZooKeeper, and ask Prometheus' promtool. Missing and not to be had: those tests are skipped
# and say why.
system-packages:
	@sh tests/install_zookeeper.sh
	@sh tests/get_promtool.sh

clean:
	rm -rf $(VENV) .venvs build dist *.egg-info framework/*.egg-info
