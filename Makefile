# The front door of Tidegate. `make help` lists the targets from their comments.

.DEFAULT_GOAL := help
.PHONY: help build wasm crash-test-wasm companion web test test-web schema fuzz demo bench bench-core bench-programs
.PHONY: lint lint-filter lint-web fmt tools wasm-bindgen clean
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# Cargo reads it too; a relative folder is relative to the root of the checkout.
export CARGO_TARGET_DIR ?= target

WASM_TARGET := wasm32-wasip1
WEB_TARGET := wasm32-unknown-unknown
SHELL_SCRIPTS := tools/with-coverage tools/install tools/install-wasm-bindgen tools/need tools/test-web .ci/run
PYTHON_SCRIPTS := tools/wasm_module.py tools/wasm-link envoy/demo.py $(wildcard bench/*.py)

# Filters link for a proxy only, so whatever runs or lints on the host leaves them out.
FILTERS := tidegate-filter tidegate-bench-noop
# The fuzzer is built with coverage alone.
ON_HOST := --workspace $(addprefix --exclude ,$(FILTERS) tidegate-fuzz)
# What runs in a web page too, and so do its tests.
IN_WEB := tidegate-plugin-config tidegate-web

help: ## lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: wasm companion ## leaves dist/tidegate.wasm (the filter) and dist/tidegate (the companion)

wasm:
	@tools/need rustup cc python3
	rustup target add $(WASM_TARGET)
	cargo build -p tidegate-filter --profile wasm --target $(WASM_TARGET)
	@mkdir -p dist
	@tools/wasm_module.py $(CARGO_TARGET_DIR)/$(WASM_TARGET)/wasm/tidegate.wasm dist/tidegate.wasm

# The filter with a way to bring it down, for tests only: nothing that is shipped is made from it.
crash-test-wasm: wasm
	cargo build -p tidegate-filter --features crash-test --profile wasm --target $(WASM_TARGET)
	install -m 644 $(CARGO_TARGET_DIR)/$(WASM_TARGET)/wasm/tidegate.wasm dist/tidegate-crash-test.wasm

companion:
	@tools/need rustup cc
	cargo build -p tidegate --bin tidegate --release
	@mkdir -p dist
	install -m 755 $(CARGO_TARGET_DIR)/release/tidegate dist/tidegate

web: wasm-bindgen ## leaves dist/web/, with which a web page judges a configuration
	cargo build -p tidegate-web --profile wasm --target $(WEB_TARGET)
	.tools/wasm-bindgen/bin/wasm-bindgen --target web --out-dir dist/web \
		$(CARGO_TARGET_DIR)/$(WEB_TARGET)/wasm/tidegate_web.wasm

test: tools build crash-test-wasm test-web ## runs all tests; those in tests/ start real Envoys, companions and stores
ifneq ($(shell command -v cargo-nextest),)
# nextest leaves documentation tests to cargo. They come first: the last words are the summary.
	cargo test $(ON_HOST) --doc
	cargo nextest run $(ON_HOST)
else
# One test at a time, as .config/nextest.toml has it too: those of tests/ measure waiting times.
	RUST_TEST_THREADS=1 cargo test $(ON_HOST)
endif

schema: ## writes the JSON Schema of the plugin configuration anew, plugin-config/schema.json
	cargo run -q -p tidegate-config-schema > $(CARGO_TARGET_DIR)/schema.json
	mv $(CARGO_TARGET_DIR)/schema.json plugin-config/schema.json

test-web: wasm-bindgen ## runs the tests of what runs in a web page, in Node
	@tools/need node
	@tools/test-web $(IN_WEB)

# Nothing else is built with coverage: the fuzzer's build is one of its own.
FUZZ_SECONDS ?= 60
FUZZ := $(CARGO_TARGET_DIR)/fuzz
fuzz: ## tries configurations on parser and schema for a minute, or FUZZ_SECONDS; the next run goes on from there
	@tools/need rustup cc c++
	mkdir -p $(FUZZ)/corpus $(FUZZ)/found
	cargo run -q -p tidegate-config-schema -- $(FUZZ)
	RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/tools/with-coverage cargo build -p tidegate-fuzz
	$(CARGO_TARGET_DIR)/debug/configuration $(FUZZ)/corpus $(FUZZ)/seeds -dict=$(FUZZ)/dictionary \
		-artifact_prefix=$(FUZZ)/found/ -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -print_final_stats=1

demo: tools build ## fetches and builds what is missing, and shows a limit at work; DEMO_ONCE=1 ends after that
	@python3 envoy/demo.py

bench: tools build bench-programs ## compares costs with Envoy's own filter, in half an hour; BENCH_QUICK=1 only tries it
	@tools/need wrk python3
	@python3 bench/bench.py

bench-core: ## measures what policies that do not apply cost a request, in the core alone
	cargo bench -p tidegate-limiter --bench policies

bench-programs: wasm
	cargo build -p tidegate-bench-load --release
	cargo build -p tidegate-bench-noop --profile wasm --target $(WASM_TARGET)
	@mkdir -p dist/bench
	install -m 755 $(CARGO_TARGET_DIR)/release/bench-load dist/bench/bench-load
	install -m 644 $(CARGO_TARGET_DIR)/$(WASM_TARGET)/wasm/noop.wasm dist/bench/noop.wasm

lint: lint-filter lint-web ## checks formatting, and lints Rust, Lua, shell and Python
	cargo fmt --all --check
	cargo clippy $(ON_HOST) --all-targets -- -D warnings
	cargo clippy -p tidegate-fuzz -- -D warnings
	@tools/need luacheck
	luacheck lua bench/keys.lua
	for script in $(SHELL_SCRIPTS); do bash -n $$script; done
	if command -v shellcheck >/dev/null; then shellcheck --severity=warning $(SHELL_SCRIPTS); fi
	python3 -c 'import ast, sys; [ast.parse(open(name).read(), name) for name in sys.argv[1:]]' $(PYTHON_SCRIPTS)

lint-filter:
	@tools/need rustup cc python3
	rustup component add clippy rustfmt
	rustup target add $(WASM_TARGET)
# Its dependencies are linted on the host, where some lints see other sizes of numbers.
	cargo clippy $(addprefix -p ,$(FILTERS)) --no-deps --target $(WASM_TARGET) -- -D warnings
	cargo clippy -p tidegate-filter --no-deps --target $(WASM_TARGET) --features crash-test -- -D warnings

lint-web:
	@tools/need rustup
	rustup component add clippy
	rustup target add $(WEB_TARGET)
	cargo clippy $(addprefix -p ,$(IN_WEB)) --no-deps --target $(WEB_TARGET) -- -D warnings

fmt: ## formats the Rust code
	cargo fmt --all

tools: ## fetches the pinned Envoy, Valkey and Redis into .tools/ (demo and test do it as needed)
	@tools/install

wasm-bindgen:
	@tools/need rustup
	rustup target add $(WEB_TARGET)
	@tools/install-wasm-bindgen

clean: ## removes what was built and fetched
	cargo clean
	rm -rf dist .tools
