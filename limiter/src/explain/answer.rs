//! What a request is answered: the limiter's own decision over buckets that are as they are said to be.

use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use crate::answer::{self, Protocol};
use crate::decision::{Decision, Verdict};
use crate::fields::{self, Family, Item, ResponseHeaders};
use crate::limiter::{Limiter, RequestId, Step, turn_of};
use crate::policies::Policies;
use crate::policy::{Policy, Sync};
use crate::request::{Attributes, Given, Terms, demands};
use crate::table::{OwnSlots, Table};
use crate::time::Instant;

/// What a request is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The HTTP status of a refusal, which is 200 for gRPC; nothing where the request goes on to upstream.
    pub status: Option<u16>,
    /// The header fields that are added or, in a refusal, all of them, in the order of their names.
    pub headers: BTreeMap<String, String>,
    /// The body of a refusal.
    pub body: String,
}

/// Where one request is counted.
const SLOTS: u32 = 64;

const REQUEST: RequestId = RequestId(0);

/// Later than any bucket takes to fill.
const NOW_US: u64 = 1 << 60;

/// The answer to a request where buckets are full after so many microseconds, by the policies' indices.
pub(super) fn of(
    policies: &Policies,
    families: &[Family],
    request: &Given,
    full_us: &[Option<u64>],
) -> Answer {
    // Counted here, a limit answers as the store would.
    let local = policies.iter().map(|policy| Policy { sync: Sync::Local, ..policy.clone() });
    let Ok(local) = Policies::try_from(local.collect::<Vec<_>>()) else { return Answer::default() };
    let table = Table::new(SLOTS, [0; 16]);
    let mut given = request.clone();
    let (mut slots, mut effects) = (OwnSlots::default(), Vec::new());
    // The first request of a limiter has this turn.
    for demand in demands(&local, &mut given, turn_of(1, REQUEST)) {
        let wanted_us = full_us.get(demand.policy).copied().flatten().unwrap_or(0);
        if let Terms::Bucket { part, .. } = demand.terms {
            // What was empty then is filled as far now.
            let then = NOW_US.saturating_sub(part.micros_for(part.parts()).saturating_sub(wanted_us));
            if wanted_us > 0 {
                let capacity = part.capacity();
                table.charge(&mut slots, &demand.key, &part, capacity, Instant::from_micros(then));
            }
        }
    }
    let mut limiter = Limiter::new(Rc::new(local), table, Duration::ZERO, "explain".to_owned());
    let now = Instant::from_micros(NOW_US);
    match limiter.on_request(REQUEST, &mut given, &mut slots, now, &mut effects) {
        Step::Decided(decision) => told(&decision, policies, families, &mut given),
        // Nothing waits where all is counted here.
        Step::Waits => Answer::default(),
    }
}

fn told(decision: &Decision, policies: &Policies, families: &[Family], request: &mut Given) -> Answer {
    let protocol = Protocol::of(request.header("content-type").as_deref());
    let mut told = Answer::default();
    if decision.verdict != Verdict::Admit
        && let Some(reply) = answer::reply(decision, policies, protocol)
    {
        told.status = Some(reply.status);
        told.headers =
            reply.headers.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned())).collect();
        told.body = reply.body.into_owned();
        if let Some(grpc_status) = reply.grpc_status {
            // As Envoy turns it into the form of gRPC.
            told.status = Some(200);
            told.headers.insert("content-type".to_owned(), "application/grpc".to_owned());
            told.headers.insert("grpc-status".to_owned(), grpc_status.to_string());
            let message = core::mem::take(&mut told.body).replace('%', "%25");
            told.headers.insert("grpc-message".to_owned(), message);
        }
    }
    let marks = decision.marks.iter();
    let items: Vec<Item<'_>> = marks.filter_map(|mark| Item::of(policies.get(mark.policy)?, mark)).collect();
    if !items.is_empty() {
        fields::write(
            families,
            &items,
            decision.verdict,
            Some(Duration::ZERO),
            &mut Fields(&mut told.headers),
        );
    }
    told
}

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl ResponseHeaders for Fields<'_> {
    fn get(&mut self, name: &'static str) -> Option<Vec<u8>> {
        self.0.get(name).map(|value| value.clone().into_bytes())
    }

    fn set(&mut self, name: &'static str, value: &[u8]) {
        self.0.insert(name.to_owned(), String::from_utf8_lossy(value).into_owned());
    }

    fn remove(&mut self, name: &'static str) {
        self.0.remove(name);
    }
}
