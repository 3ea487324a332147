# make demo | test | test-quick | coverage | hosts | lowest | check | audit | bench | bench-scale | race | paper:
# each sets up .venv as far as it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: demo test test-quick coverage hosts lowest check audit bench bench-scale race paper clean

demo: .venv/demo.stamp
	$(BIN)/covey demo

# For `make hosts` alone: what needs a host, guards documents, benchmarks and the paper's figures, and the pins.
INTEGRATIONS := src/covey/integrations
HOSTED := $(filter-out %/ax.py,$(wildcard $(INTEGRATIONS)/*.py $(INTEGRATIONS)/spaces/*.py)) \
	$(addprefix src/covey/run/,dask.py ray.py) \
	tests/unit/integrations tests/unit/space/test_smiles.py tests/doors/bench tests/pins \
	$(addprefix tests/doors/run/test_,dask.py ray.py running_page.py) \
	tests/doors/report/test_browser.py tests/doors/cli/test_spreadsheets.py tests/doors/cli/test_plates_tutorial.py \
	tests/doors/testing/test_contracts_page.py $(wildcard tests/doors/test_*_page.py tests/doors/cli/test_*_page.py) \
	$(filter-out %/test_race.py,$(wildcard tests/papers/test_*.py))
# Tests of engines and runs wait for processes and clocks: they have more workers than there are cores.
WAITING := tests/doors/run tests/reliability tests/doors/testing/test_engine.py \
	$(addprefix tests/doors/cli/test_,run.py watch.py)
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --dist worksteal
NOT_HOSTED := -m "not host" $(addprefix --ignore=,$(INTEGRATIONS) $(HOSTED))
COMPUTE := $(PYTEST) -n auto $(NOT_HOSTED) $(addprefix --ignore=,$(WAITING))
WAIT := $(PYTEST) -n 6 $(NOT_HOSTED) $(WAITING)

test: .venv/test.stamp
	@$(COMPUTE)
	@$(WAIT)

# Doctests and unit tests, but for those that take half of their time.
SLOW := tests/unit/large $(addprefix tests/unit/test_,candidates.py catalog.py gains.py strategies.py study_outcomes.py) \
	$(addprefix tests/unit/gp/test_,fit.py success.py)
test-quick: .venv/test.stamp
	@$(PYTEST) -n auto $(NOT_HOSTED) $(addprefix --ignore=,$(SLOW)) src tests/unit

# The same tests, and which lines of src they leave out.
coverage: .venv/test.stamp
	@$(COMPUTE) --cov --cov-report= --cov-fail-under=0
	@$(WAIT) --cov --cov-append --cov-report=term:skip-covered

hosts: .venv/hosts.stamp
	@COVEY_NO_SKIPS=1 $(PYTEST) -n auto $(HOSTED) contrib/covey-dask/src contrib/covey-dask/tests
	@COVEY_NO_SKIPS=1 $(PYTEST) -n auto -m host tests/doors/run

# The lowest versions that pyproject.toml allows, in a .venv of their own. What they warn of is no error.
EXTRAS := plot,report,frames,parquet,excel
LOWEST := tests/unit/history tests/unit/space tests/unit/log tests/doors/report tests/doors/cli/test_app.py \
	tests/doors/cli/test_run.py tests/doors/run/test_windows.py $(addprefix tests/unit/test_,arrays.py propose.py)
lowest: .venv-lowest/stamp
	OMP_NUM_THREADS=1 .venv-lowest/bin/pytest -n auto -W default $(LOWEST)

.venv-lowest/stamp: pyproject.toml .ci/lowest.py
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/pip install --quiet --upgrade "pip>=25.1"
	.venv-lowest/bin/python .ci/lowest.py $(EXTRAS) > .venv-lowest/constraints.txt
	.venv-lowest/bin/pip install --quiet --constraint .venv-lowest/constraints.txt \
		-e '.[$(EXTRAS)]' pytest pytest-xdist hypothesis mpmath polars
	touch $@

check: .venv/check.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Published vulnerabilities of what is installed; where nothing can be looked up, it says so.
audit: .venv/audit.stamp
	$(BIN)/python .ci/audit.py

bench: .venv/bench.stamp
	$(BIN)/python benchmarks/speed.py

# Pools of a million, BoTorch beside them, thousands of results, a cluster: about half an hour.
bench-scale: .venv/bench.stamp .venv/hosts.stamp
	$(BIN)/python -m benchmarks.scale --peer --plot docs/pictures/scale.png
	$(BIN)/python -m benchmarks.scale.pools
	$(BIN)/python -m benchmarks.scale_results
	PYTHONPATH=contrib/covey-dask/src $(BIN)/python -m benchmarks.scale_dask

race: .venv/bench.stamp
	$(BIN)/python -m benchmarks.race run
	$(BIN)/python -m benchmarks.race table

paper: .venv/papers.stamp
	$(BIN)/python -m papers.kathuria2016 all

clean:
	rm -rf .venv .venv-lowest

.venv/pip.stamp:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

.venv/demo.stamp: .venv/pip.stamp pyproject.toml
	$(BIN)/pip install --quiet -e '.[plot]'
	touch $@

.venv/hosts.stamp: .venv/test.stamp
.venv/test.stamp .venv/hosts.stamp .venv/check.stamp .venv/audit.stamp .venv/bench.stamp .venv/papers.stamp: .venv/%.stamp: .venv/demo.stamp constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --group $*
	touch $@
