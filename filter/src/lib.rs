//! The Tidegate filter: adapts the decision core to proxy-wasm.
//!
//! Callbacks become the core's inputs, its effects become host calls. What is decided here is only how a
//! host is spoken to; what becomes of a request is decided in `limiter`.

mod attributes;
mod companion_health;
#[cfg(feature = "crash-test")]
mod crash_test;
mod host;
mod metrics;
mod response;
mod root;
mod shared_data;
mod stream;
mod worker;

mod start {
    use proxy_wasm::traits::RootContext;
    use proxy_wasm::types::LogLevel;

    use crate::root::Root;

    proxy_wasm::main! {{
        proxy_wasm::set_log_level(LogLevel::Info);
        proxy_wasm::set_root_context(|id| -> Box<dyn RootContext> { Box::new(Root::new(id)) });
    }}
}
