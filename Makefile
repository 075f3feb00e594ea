# Makefile - a thin front over CMake, which knows how to build, and over the scripts in dev/.
# SPDX-License-Identifier: MIT

BUILD := build
SECONDS ?= 300
T ?= 20m

.PHONY: all flavours run run-reserve test check fault fuzz coverage mutants platforms lint format count micro peers tool bench \
        bench-quick war stress soak recipes lab lab-trees lab-runs lab-200k lab-locks lab-arenas lab-neighbours lab-scale install \
        packages release site pictures clean help
.DEFAULT_GOAL := all

all: $(BUILD)/build.ninja ## build libprairie.so, libprairie.a, jemalloc/libjemalloc.so.2 in build/ (plain `make`)
	@cmake --build $(BUILD) --target prairie_shared prairie_static prairie_jemalloc

flavours: $(BUILD)/build.ninja ## build every flavour: plain, check, audit, check-tiny, audit-tiny, heaps, hardened, copies
	@cmake --build $(BUILD) --target flavours

run: ## run a real program on prairie, and compare with the C library; PROGRAM='...'
	@dev/setup build run
	@$(MAKE) --no-print-directory all
	@dev/run

run-reserve: ## run a cache inside a limit with the memory reserve, without, and on the C library; plots
	@dev/setup build run reserve
	@$(MAKE) --no-print-directory all
	@dev/run_reserve $(ARGS)

test: ## set up, build every flavour, run all tests; ARGS='-L kind:unit' picks some, '-L long' the lab's
	@dev/test $(ARGS)

fault: ## refuse every kernel call with every error, at least 280,000 of them; ARGS go to ctest
	@PRAIRIE_TEST_MINUTES=0 dev/test -L kind:fault $(ARGS)

platforms: ## build and test on every platform that can be had here; ARGS='i386 musl' picks some rows
	@dev/platforms $(ARGS)

check: ## run the unit, contract and crash tests in the check flavour, in about a minute; ARGS go to ctest
	@dev/test --quick $(ARGS)

lint: ## check format, floors, words, warnings, and style (which only warns)
	@dev/lint

format: ## rewrite all C files in our format
	@dev/check_format.sh --rewrite

count: ## compare instructions, loads, stores, branches and locks with the committed tables; RENEW=1 writes those of now
	@dev/count

micro: ## compare allocators on small patterns of calls; ARGS go to dev/micro
	@dev/micro $(ARGS)

peers: ## build the allocators to compare with, once; ARGS='mimalloc3' picks some
	@dev/setup build bench
	@dev/peers $(ARGS)

tool: all ## build the prairie command in build/tool/release/, with the library in it
	@dev/tool build

pictures: ## the pages of the prairie command in a browser, light and dark: build/pictures/*.png
	@dev/pictures

bench: ## compare allocators on all workloads and programs; ARGS go to prairie compare
	@dev/bench $(ARGS)

bench-quick: ## the same in less than five minutes, with smaller workloads and fewer rounds
	@dev/bench --quick $(ARGS)

war: ## allocators in JavaScript engines: build/war/results/war.html; ARGS=--quick, or ARGS go to prairie compare
	@dev/war $(ARGS)

fuzz: ## look for inputs that break something, SECONDS=300 for each target; ARGS='runs slab' picks some
	@PRAIRIE_FUZZ_SECONDS=$(SECONDS) dev/fuzz $(ARGS)

coverage: ## which lines and branches of src the tests execute; ARGS='--missing heap/vast.c' shows what they do not
	@dev/coverage $(ARGS)

mutants: ## break the library in 330 small ways, one at a time: which of them does no test see? After make coverage
	@dev/mutants $(ARGS)

stress: ## run the stress tests for SECONDS=300 each
	@PRAIRIE_STRESS_SECONDS=$(SECONDS) dev/test -L kind:stress $(ARGS)

soak: ## run the stress test and its oracle for T=20m, 2h: operations, errors, growth of memory
	@dev/soak $(T)

recipes: ## do what the pages of docs/recipes say, and measure it; ARGS='redis' picks some, ARGS=--try measures nothing
	@dev/recipes $(ARGS)

lab: ## repeat the experiments of docs/lab.md; ARGS=--quick, or ARGS go to every part
	@dev/lab $(ARGS)

lab-trees: ## five balanced trees, one interface
	@dev/lab trees $(ARGS)

lab-runs: ## three keepers of page runs: trees, treaps, and prairie's linear map
	@dev/lab runs $(ARGS)

lab-200k: ## 200,000 allocations and nothing else: instructions and locks
	@dev/lab 200k $(ARGS)

lab-locks: ## prairie's lock and the system's, uncontended and contended
	@dev/lab locks $(ARGS)

lab-arenas: ## rules by which threads choose arenas
	@dev/lab arenas $(ARGS)

lab-scale: ## 1 to 64 cores in a model that moves lines of memory between them
	@dev/lab scale $(ARGS)

lab-neighbours: ## CPython with and without its own pool; short-lived programs
	@dev/lab neighbours $(ARGS)

install: all ## install under PREFIX=/usr/local (DESTDIR is honoured); the command too, after `make tool`
	@cmake --build $(BUILD) --target prairie_shared-hardened prairie_shared-copies
	@cmake --install $(BUILD) $(if $(PREFIX),--prefix '$(PREFIX)')
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' dev/tool install

packages: ## make Debian packages, an .rpm and a tarball, use and remove each; Bazel, containers; ARGS='deb' is one part
	@dev/packages $(ARGS)

release: ## make a release candidate of this commit in build/release; ARGS=--packages for packages, too
	@dev/release $(ARGS)

site: ## make the site of these pages in build/site, and check its links; ARGS=--look takes pictures of it
	@dev/setup site $(if $(filter --look,$(ARGS)),pictures)
	@dev/make_site.py $(ARGS)

clean: ## remove everything that was built
	@rm -rf $(BUILD)

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BUILD)/build.ninja:
	@cmake -S . -B $(BUILD) -G Ninja
