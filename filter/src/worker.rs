//! What the root context and the streams of one worker share: the limiter, and the way from its effects
//! to host calls.

use core::cell::RefCell;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use limiter::answer::{self, Protocol};
use limiter::decision::{Decision, Verdict};
use limiter::fields::Family;
use limiter::limiter::{CallId, Effect, Limiter, RequestId, Step};
use limiter::table::Table;
use limiter::wire::{MARKER_HEADER, MARKER_VALUE, TAKE_PATH, TakeReply};
use plugin_config::{Companion, Config};
use proxy_wasm::hostcalls;
use proxy_wasm::types::{Action, Status};

use crate::attributes::RequestAttributes;
use crate::companion_health::{CompanionHealth, Fault};
use crate::host::{self, Buffer, Map};
use crate::metrics::Metrics;
use crate::response;
use crate::shared_data::SharedSlots;

/// How often deadlines are looked at while requests wait: what a wait may exceed its timeout by.
const TICK_MS: u32 = 10;

/// What callouts are addressed to, whatever the cluster is called.
const AUTHORITY: &str = "tidegate";

/// The most requests that one callback lets go on or answers. The proxy carries such actions out when the
/// callback returns, each nested in the one before, and its stack takes a few hundred.
const MAX_DECISIONS_A_CALLBACK: usize = 64;

/// When the next callback comes where that many were not enough.
const NEXT_CALLBACK_MS: u32 = 1;

/// The most bytes of a companion's answer that are looked at.
const MAX_REPLY_BYTES: usize = 1 << 20;

/// The most bytes of Envoy's words that are logged.
const MAX_WORDS_BYTES: usize = 160;

/// The timeout where no policy asks the companion.
const NO_TIMEOUT: Duration = Duration::ZERO;

/// Where a stream's decision is left, for the response's headers.
pub(crate) type Decided = Rc<RefCell<Option<Decision>>>;

/// One worker of one configuration.
pub(crate) struct Worker {
    root: u32,
    companion: Option<Companion>,
    companion_health: CompanionHealth,
    pub(crate) families: Vec<Family>,
    pub(crate) limiter: Limiter,
    attributes: RequestAttributes,
    slots: SharedSlots,
    metrics: Metrics,
    /// The core's calls by the host's tokens.
    calls: BTreeMap<u32, CallId>,
    /// Streams that wait, with where each finds its decision.
    waiting: BTreeMap<u32, Decided>,
    effects: Vec<Effect>,
    /// Decisions that are yet to be carried out, in their order.
    decided: VecDeque<(RequestId, Decision)>,
    /// What the stream whose request callback is being served is to do, where that was decided meanwhile.
    current_action: Option<Action>,
    /// How often `on_tick` comes; 0 never.
    tick_ms: u32,
}

impl Worker {
    pub(crate) fn new(root: u32, config: Config) -> Self {
        let slots = SharedSlots::of_this_plugin(config.slots);
        let table = Table::new(config.slots, slots.seed());
        let timeout = config.companion.as_ref().map_or(NO_TIMEOUT, |companion| companion.timeout);
        log::info!(
            "tidegate: policies loaded: {}; slots of state: {}, which take at most {} bytes of the proxy's memory",
            config.policies.len(),
            config.slots,
            slots.max_bytes(&table)
        );
        let metrics = Metrics::new(&config.policies);
        let holder = table.name();
        Self {
            root,
            companion: config.companion,
            companion_health: CompanionHealth::default(),
            families: config.families,
            limiter: Limiter::new(Rc::new(config.policies), table, timeout, holder),
            attributes: RequestAttributes::default(),
            slots,
            metrics,
            calls: BTreeMap::new(),
            waiting: BTreeMap::new(),
            effects: Vec::new(),
            decided: VecDeque::new(),
            current_action: None,
            tick_ms: 0,
        }
    }

    /// A request has arrived, in its own context.
    pub(crate) fn on_request(&mut self, stream: u32, decided: &Decided) -> Action {
        let request = RequestId(stream);
        let step = self.limiter.on_request(
            request,
            &mut self.attributes,
            &mut self.slots,
            host::now(),
            &mut self.effects,
        );
        self.count_events();
        let decision = match step {
            Step::Decided(decision) => decision,
            Step::Waits => {
                self.metrics.waits.add(1);
                self.waiting.insert(stream, Rc::clone(decided));
                // The call must be made as the root; see `host::call_root`.
                return Action::Pause;
            }
        };
        self.metrics.count(&decision.marks);
        let action = self.answer(&decision);
        decided.replace(Some(decision));
        action
    }

    /// True where there is something to do that only the root can: [`Worker::carry_out`].
    pub(crate) fn needs_root(&self) -> bool {
        let must_wake = self.tick_ms == 0 && self.limiter.needs_tick();
        !self.effects.is_empty() || must_wake
    }

    /// Counts what the limiter has noticed.
    fn count_events(&mut self) {
        self.metrics.evictions.add(self.limiter.take_evictions());
        self.metrics.breaker_opened.add(self.limiter.take_opened());
    }

    pub(crate) fn root(&self) -> u32 {
        self.root
    }

    /// Carries out what the limiter wants. To be called while the SDK runs a callback of the root, with the root
    /// as the effective context, which some stream may be afterwards.
    ///
    /// `current` is the stream whose request callback is being served, if any. It is never resumed, for
    /// it has not paused yet; see [`Worker::take_current_action`].
    pub(crate) fn carry_out(&mut self, current: Option<u32>) {
        // A call that cannot be made is decided at once, which may give rise to more.
        while !self.effects.is_empty() {
            for effect in core::mem::take(&mut self.effects) {
                match effect {
                    Effect::Call { call, body } => self.call(call, &body),
                    Effect::Decide { request, decision } if current == Some(request.0) => {
                        self.decide(request, decision, true);
                        // More calls may follow, and are the root's.
                        let _ = host::set_effective_context(self.root);
                    }
                    Effect::Decide { request, decision } => self.decided.push_back((request, decision)),
                }
            }
        }
        for _ in 0..MAX_DECISIONS_A_CALLBACK {
            let Some((request, decision)) = self.decided.pop_front() else { break };
            self.decide(request, decision, false);
        }
        self.count_events();
        self.watch_deadlines();
    }

    /// What the current stream is to do, where [`Worker::carry_out`] has decided it.
    pub(crate) fn take_current_action(&mut self) -> Option<Action> {
        self.current_action.take()
    }

    /// The proxy has an answer to a callout, or says that there is none.
    pub(crate) fn on_call_ended(&mut self, token: u32, header_count: usize, body_bytes: usize) {
        let Some(call) = self.calls.remove(&token) else { return };
        match reply(header_count, body_bytes) {
            Ok(reply) => {
                let now = host::now();
                self.companion_health.on_answered(now);
                self.limiter.on_reply(call, reply, &mut self.slots, now, &mut self.effects);
            }
            Err(fault) => self.fail(call, &fault),
        }
        self.carry_out(None);
    }

    pub(crate) fn on_tick(&mut self) {
        self.limiter.on_tick(&mut self.slots, host::now(), &mut self.effects);
        self.carry_out(None);
        // Ticks get rarer here and not when the last request is decided: the next one, which most often comes
        // soon, need not start them again.
        self.tick_every(self.wanted_tick_ms());
    }

    /// A stream has ended. One that waited has lost its client.
    pub(crate) fn on_stream_gone(&mut self, stream: u32) {
        if self.waiting.remove(&stream).is_some() {
            self.limiter.on_gone(RequestId(stream), &mut self.slots, host::now());
        }
    }

    fn call(&mut self, call: CallId, body: &[u8]) {
        self.metrics.callouts.add(1);
        let Some(companion) = &self.companion else { return self.fail(call, &Fault::NoCluster) };
        let headers = vec![
            (":method", "POST"),
            (":path", TAKE_PATH),
            // Not the cluster's name: in Istio that holds characters that no authority may hold.
            (":authority", AUTHORITY),
            ("content-type", "application/json"),
        ];
        let token = hostcalls::dispatch_http_call(
            &companion.cluster,
            headers,
            Some(body),
            Vec::new(),
            companion.timeout,
        );
        match token {
            Ok(token) => drop(self.calls.insert(token, call)),
            Err(Status::BadArgument) => self.fail(call, &Fault::NoCluster),
            Err(_) => self.fail(call, &Fault::NotSent),
        }
    }

    fn fail(&mut self, call: CallId, fault: &Fault) {
        self.metrics.callouts_failed.add(1);
        let now = host::now();
        if let Some(companion) = &self.companion {
            self.companion_health.on_failed(&companion.cluster, fault, now);
        }
        self.limiter.on_call_failed(call, &mut self.slots, now, &mut self.effects);
    }

    /// Lets a request that waited go on, or answers it. Leaves it as the effective context.
    fn decide(&mut self, request: RequestId, decision: Decision, is_current: bool) {
        self.metrics.count(&decision.marks);
        let Some(decided) = self.waiting.remove(&request.0) else { return };
        // A stream that is gone takes no calls: they would act on the context that was effective before.
        if host::set_effective_context(request.0).is_err() {
            return;
        }
        let action = self.answer(&decision);
        decided.replace(Some(decision));
        if is_current {
            self.current_action = Some(action);
        } else if action == Action::Continue {
            // It fails only for a stream that is going away by itself.
            let _ = host::resume_request();
        }
    }

    /// Answers the effective context's request unless it passes.
    fn answer(&self, decision: &Decision) -> Action {
        if decision.verdict == Verdict::Admit {
            return Action::Continue;
        }
        match answer::reply(decision, self.limiter.policies(), protocol()) {
            // Where the proxy refuses our answer, upstream must not get the request either: it stays
            // paused until the stream's idle timeout.
            Some(reply) => response::send(&reply).unwrap_or(Action::Pause),
            None => Action::Continue,
        }
    }

    /// Ticks while something waits. An idle proxy does nothing: the first tick that finds nothing is the last.
    fn watch_deadlines(&mut self) {
        let wanted_ms = self.wanted_tick_ms();
        if wanted_ms > 0 && (self.tick_ms == 0 || wanted_ms < self.tick_ms) {
            self.tick_every(wanted_ms);
        }
    }

    fn wanted_tick_ms(&self) -> u32 {
        match (self.decided.is_empty(), self.limiter.needs_tick()) {
            (false, _) => NEXT_CALLBACK_MS,
            (true, true) => TICK_MS,
            (true, false) => 0,
        }
    }

    fn tick_every(&mut self, period_ms: u32) {
        if period_ms != self.tick_ms && host::set_tick_period_ms(period_ms).is_ok() {
            self.tick_ms = period_ms;
        }
    }
}

/// The companion's answer to a callout, in a callback of the root, or why there is none.
fn reply(header_count: usize, body_bytes: usize) -> Result<TakeReply, Fault> {
    if header_count == 0 {
        return Err(Fault::NoAnswer(String::new()));
    }
    // Envoy makes 503 and 504 answers of its own, and a wrong address may answer 200.
    let marker = host::header(Map::Callout, MARKER_HEADER);
    let status = host::header(Map::Callout, ":status").unwrap_or_default();
    match (marker.as_deref() == Some(MARKER_VALUE.as_bytes()), status.as_slice()) {
        (true, b"200") => {}
        (true, other) => return Err(Fault::Refused(String::from_utf8_lossy(other).into_owned())),
        (false, b"503" | b"504") => return Err(Fault::NoAnswer(envoys_words(body_bytes))),
        (false, _) => return Err(Fault::NotACompanion),
    }
    if body_bytes > MAX_REPLY_BYTES {
        return Err(Fault::Unreadable);
    }
    let body = host::buffer(Buffer::CalloutBody, body_bytes);
    body.and_then(|body| TakeReply::read(&body)).ok_or(Fault::Unreadable)
}

/// What Envoy says in place of an answer, as `upstream request timeout`. It may be somebody else's answer after
/// all, so it is shortened, and harmless to a log.
fn envoys_words(body_bytes: usize) -> String {
    let body = host::buffer(Buffer::CalloutBody, body_bytes.min(MAX_WORDS_BYTES)).unwrap_or_default();
    body.into_iter().map(|byte| if matches!(byte, b' '..=b'~') { char::from(byte) } else { '_' }).collect()
}

/// How the effective context's request wants to be answered.
fn protocol() -> Protocol {
    Protocol::of(host::header(Map::Request, "content-type").as_deref())
}
