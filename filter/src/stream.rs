//! One request and its response.

use core::cell::RefCell;
use std::rc::Rc;

use limiter::decision::Verdict;
use limiter::fields::{self, Item};
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;

use crate::host;
use crate::response;
use crate::worker::{Decided, Worker};

/// The context of a stream.
pub(crate) struct Stream {
    id: u32,
    worker: Rc<RefCell<Worker>>,
    decided: Decided,
}

impl Stream {
    pub(crate) fn new(id: u32, worker: Rc<RefCell<Worker>>) -> Self {
        Self { id, worker, decided: Decided::default() }
    }
}

/// The end of a stream, which comes once and last. `on_done` comes just before and would be a second call for
/// the same news, so the module does not export it.
impl Drop for Stream {
    fn drop(&mut self) {
        self.worker.borrow_mut().on_stream_gone(self.id);
    }
}

impl Context for Stream {}

impl HttpContext for Stream {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        #[cfg(feature = "crash-test")]
        crate::crash_test::crash_if_asked();
        let mut worker = self.worker.borrow_mut();
        let action = worker.on_request(self.id, &self.decided);
        if !worker.needs_root() {
            return action;
        }
        let root = worker.root();
        drop(worker);
        if host::set_effective_context(root).is_err() {
            // Without its root there is nobody to decide one that waits, and no tick to end its wait.
            let is_decided = self.decided.borrow().is_some();
            return if is_decided { action } else { Action::Continue };
        }
        host::call_root(root, self.id);
        // The effective context holds until this callback returns, which makes no host call any more.
        self.worker.borrow_mut().take_current_action().unwrap_or(action)
    }

    fn on_http_response_headers(&mut self, _: usize, _: bool) -> Action {
        let decided = self.decided.borrow();
        let Some(decision) = decided.as_ref() else { return Action::Continue };
        let worker = self.worker.borrow();
        if worker.families.is_empty() {
            return Action::Continue;
        }
        let policies = worker.limiter.policies();
        let items: Vec<Item> =
            decision.marks.iter().filter_map(|mark| Item::of(policies.get(mark.policy)?, mark)).collect();
        // An answer of the filter's own is no redirect, and is not asked whether it is.
        let is_own = decision.verdict != Verdict::Admit;
        if !items.is_empty() && (is_own || !response::is_redirect()) {
            let needs_clock = worker.families.iter().any(|family| family.needs_wall_clock());
            let unix_now = needs_clock.then(host::unix_now);
            fields::write(&worker.families, &items, decision.verdict, unix_now, &mut response::Headers);
        }
        Action::Continue
    }
}
