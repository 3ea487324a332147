# make demo | test | hosts | lowest | check | audit | bench | bench-scale | race | paper: each sets up .venv as far as it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: demo test hosts lowest check audit bench bench-scale race paper clean

demo: .venv/demo.stamp
	$(BIN)/covey demo

test: .venv/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --cov --cov-report=term:skip-covered

# The tests that `make test` skips where a host is missing: here nothing may be skipped.
HOSTED := tests/unit/integrations tests/unit/space/test_smiles.py \
	$(addprefix tests/doors/run/test_,dask.py ray.py engines.py reports.py running_page.py) \
	tests/doors/report/test_browser.py tests/doors/cli/test_spreadsheets.py tests/doors/bench/test_race.py \
	$(wildcard tests/papers/test_fastxml_*.py) $(addprefix tests/papers/test_,data.py findings.py robot.py) \
	contrib/covey-dask/src contrib/covey-dask/tests
hosts: .venv/hosts.stamp
	OMP_NUM_THREADS=1 COVEY_NO_SKIPS=1 $(BIN)/pytest -n auto $(HOSTED)

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
		-e '.[$(EXTRAS)]' pytest pytest-xdist hypothesis mpmath
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
