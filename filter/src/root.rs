//! The plugin in one worker: its configuration, callouts and ticks.

use core::cell::RefCell;
use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

use crate::host::{self, Buffer};
use crate::stream::Stream;
use crate::worker::Worker;

/// The root context. A new configuration comes with a new one; the old one lives on until its streams
/// have ended.
pub(crate) struct Root {
    id: u32,
    worker: Option<Rc<RefCell<Worker>>>,
}

impl Root {
    pub(crate) fn new(id: u32) -> Self {
        Self { id, worker: None }
    }
}

impl Context for Root {
    fn on_http_call_response(&mut self, token: u32, headers: usize, body_bytes: usize, _: usize) {
        if let Some(worker) = &self.worker {
            worker.borrow_mut().on_call_ended(token, headers, body_bytes);
        }
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, _: usize) -> bool {
        // Istio's empty pluginConfig arrives as no bytes, which the parser has a remedy for.
        let bytes = host::buffer(Buffer::PluginConfiguration, usize::MAX).unwrap_or_default();
        match plugin_config::parse(&bytes) {
            Ok(config) => {
                self.worker = Some(Rc::new(RefCell::new(Worker::new(self.id, config))));
                true
            }
            Err(errors) => {
                for error in &errors {
                    log::error!("tidegate: configuration refused: {error}");
                }
                false
            }
        }
    }

    fn on_tick(&mut self) {
        if let Some(worker) = &self.worker {
            worker.borrow_mut().on_tick();
        }
    }

    /// No queue is ever registered: this is where a stream's callback runs the root; see
    /// [`host::call_root`].
    fn on_queue_ready(&mut self, stream: u32) {
        if let Some(worker) = &self.worker {
            worker.borrow_mut().carry_out(Some(stream));
        }
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, id: u32) -> Option<Box<dyn HttpContext>> {
        // The proxy makes streams only after the configuration was accepted.
        match &self.worker {
            Some(worker) => Some(Box::new(Stream::new(id, Rc::clone(worker)))),
            None => Some(Box::new(Unconfigured)),
        }
    }
}

/// A stream that no configuration is there for: let through.
struct Unconfigured;

impl Context for Unconfigured {}
impl HttpContext for Unconfigured {}
