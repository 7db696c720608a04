# make demo    train a guided diffusion model on handwritten digits and write its report
# make test    run the linters, the type checker and the tests
# make fuzz    run 100,000 commands with random arguments and damaged files (SEED=0 FROM=0 CASES=100000, in pieces)
# make coverage  run the same tests and report line coverage (1.5 times as long)
# make slow    run the tests that take more than two seconds each
# make kills   kill the runs of all experiments and resume them: ARGS="vae --minutes 30"
# make mutants  plant errors in the methods and report the share that claims and tests notice: ARGS="--room text --minutes 30"
# make parity  compare the parts with independent libraries, in a separate environment
# make bands   run the laptop profile of every experiment and compare the results with their bands: ARGS="vae --minutes 30"
# make bench   benchmark the parts against those libraries
# make readme  update the numbers in README.md from the atlas
# make pictures  draw the pictures of the rooms and take the screenshots of the lab in docs/
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PARNASSUS := .venv/bin/parnassus
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test fuzz slow kills coverage lint mutants parity bands bench readme pictures clean

demo: .venv/ready
	$(PARNASSUS) run diffusion_on_digits

test: lint
	.venv/bin/pytest -n 2 --dist loadgroup -m "not slow" --durations 10

SEED ?= 0
FROM ?= 0
CASES ?= 100000
PIECE := 5000

fuzz: .venv/ready
	@for first in $$(seq $(FROM) $(PIECE) $$(($(FROM) + $(CASES) - 1))); do \
	    echo "cases from $$first (continue here with FROM=$$first)"; \
	    PARNASSUS_FUZZ=$(SEED) PARNASSUS_FUZZ_FIRST=$$first PARNASSUS_FUZZ_CASES=$(PIECE) \
	    .venv/bin/pytest -o addopts="-q --strict-markers" -p no:cacheprovider tests/fuzz || exit 1; \
	done

coverage: .venv/ready
	.venv/bin/pytest -n 2 --dist loadgroup --cov --cov-report=term:skip-covered

slow: .venv/ready
	.venv/bin/pytest -n 2 --dist loadgroup -m slow

kills: .venv/ready
	.venv/bin/python tests/kills.py $(ARGS)

lint: .venv/ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache

mutants: .venv/ready  # continues where it was stopped
	.venv/bin/python -m tests.mutants $(ARGS)

parity: .venv-parity/ready
	.venv-parity/bin/pytest -p no:cacheprovider -o addopts="-q --strict-markers" tests/parity

bands: .venv/ready
	.venv/bin/python tests/bands.py $(ARGS)

bench: .venv-bench/ready .venv-tangents/ready
	.venv-bench/bin/python benchmarks/startup.py
	.venv-bench/bin/python benchmarks/overhead.py
	.venv-bench/bin/python benchmarks/optimisers.py
	.venv-bench/bin/python benchmarks/autodiff_step.py
	.venv-bench/bin/python benchmarks/pca.py
	.venv-bench/bin/python benchmarks/pca_memory.py
	.venv-bench/bin/python benchmarks/vae_throughput.py
	.venv-bench/bin/python benchmarks/real_nvp.py
	.venv-bench/bin/python benchmarks/ddim_sampling.py
	.venv-bench/bin/python benchmarks/unet_training.py
	.venv-bench/bin/python benchmarks/performer.py
	.venv-bench/bin/python benchmarks/attention_length.py
	.venv-bench/bin/python benchmarks/gpt_training.py
	.venv-bench/bin/python benchmarks/generation.py
	.venv-bench/bin/python benchmarks/kernel_entries.py --python .venv-tangents/bin/python
	.venv-bench/bin/python benchmarks/convolutional_kernel.py --python .venv-tangents/bin/python
	.venv-bench/bin/python benchmarks/empirical_ntk.py
	.venv-bench/bin/python benchmarks/exact_shapley.py
	.venv-bench/bin/python benchmarks/kernel_shap.py
	.venv-bench/bin/python benchmarks/shapley_quality.py
	.venv-bench/bin/python benchmarks/agent_steps.py
	.venv-bench/bin/python benchmarks/dqn_steps.py
	.venv-bench/bin/python benchmarks/time_to_solve.py
	.venv-bench/bin/python benchmarks/watching.py
	.venv-bench/bin/python benchmarks/fast_backward.py

readme: .venv/ready
	.venv/bin/python docs/readme_numbers.py

pictures: .venv/ready
	.venv/bin/python docs/pictures.py
	PARNASSUS_SCREENSHOTS=$(CURDIR)/docs .venv/bin/pytest tests/lab/test_browser.py

# Build environments of setuptools and hatchling install the latest versions; install the pinned ones first.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install -q -c constraints.txt hatchling editables
	.venv/bin/pip install -q -c constraints.txt --no-build-isolation -e '.[all,dev,export]'
	touch $@

.venv-parity/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-parity
	.venv-parity/bin/pip install -q -c constraints.txt hatchling editables setuptools wheel
	.venv-parity/bin/pip install -q -c constraints.txt --no-build-isolation -e '.[parity]'
	touch $@

.venv-bench/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install -q -c constraints.txt hatchling editables setuptools wheel
	.venv-bench/bin/pip install -q -c constraints.txt --no-build-isolation -e '.[all,bench]'
	touch $@

.venv-tangents/ready:  # neural-tangents can be imported only with these versions
	$(PYTHON) -m venv .venv-tangents
	.venv-tangents/bin/pip install -q jax==0.4.30 jaxlib==0.4.30 'numpy<2' neural-tangents==0.6.5
	touch $@

clean:
	rm -rf .venv .venv-parity .venv-bench .venv-tangents dist build .mypy_cache .pytest_cache .ruff_cache .mutants
