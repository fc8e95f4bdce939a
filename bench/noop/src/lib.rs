//! A filter that lets every request pass and touches nothing.
//!
//! It has the callbacks of the Tidegate filter, so that the difference between the two is what Tidegate does in
//! them, and the difference to an Envoy without a filter is what crossing into a module costs.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType};

mod start {
    use proxy_wasm::traits::RootContext;
    use proxy_wasm::types::LogLevel;

    use crate::Noop;

    proxy_wasm::main! {{
        proxy_wasm::set_log_level(LogLevel::Info);
        proxy_wasm::set_root_context(|_| -> Box<dyn RootContext> { Box::new(Noop) });
    }}
}

struct Noop;

impl Context for Noop {}

impl RootContext for Noop {
    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Self))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

impl HttpContext for Noop {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        Action::Continue
    }

    fn on_http_response_headers(&mut self, _: usize, _: bool) -> Action {
        Action::Continue
    }
}
