//! `POST /v1/take` between its bytes and the store: read and check a request, make the script call of it,
//! read the script's answer. What a take means is in [`limiter::wire`] and `lua/token_bucket.lua`.

mod holder;
mod key;
mod lease;
mod report;
mod request;

use limiter::wire::{Charge, Charged, LeaseAsk, Limit, Report, TakeReply, TakeRequest, Taken};

use crate::script::TOKEN_BUCKET;
use crate::store::{Call, StoreError};

pub use holder::HolderError;
pub use key::{KeyError, policy_of};
pub use lease::LeaseError;
pub use report::ReportError;
pub use request::{RequestError, read};

/// The script's verdicts.
const ADMITTED: i64 = 1;
const REFUSED: i64 = 0;
const UNREADABLE: i64 = -1;

/// The script's `wait_us` of a cost above capacity.
const NEVER: i64 = -1;

/// The script call that decides all takes of a request.
pub fn call(request: &TakeRequest) -> Call {
    let charges = || request.takes.iter().flat_map(|take| &take.charges);
    let mut args = vec![request.takes.len().to_string()];
    for take in &request.takes {
        args.push(take.charges.len().to_string());
        for charge in &take.charges {
            args.extend(arguments(charge));
            args.extend(lease_arguments(charge.lease.as_ref()));
            args.extend(report_arguments(charge.report.as_ref()));
        }
    }
    Call { script: &TOKEN_BUCKET, keys: charges().map(|charge| charge.key.clone()).collect(), args }
}

fn arguments(charge: &Charge) -> [String; 5] {
    let Limit::TokenBucket(bucket) = charge.limit;
    [
        bucket.capacity().to_string(),
        bucket.parts_per_token().to_string(),
        bucket.parts_per_micro().to_string(),
        charge.cost.to_string(),
        u8::from(!charge.shadow).to_string(),
    ]
}

fn lease_arguments(ask: Option<&LeaseAsk>) -> Vec<String> {
    let Some(LeaseAsk { holder, id, want, ttl_us, returns }) = ask else {
        return vec!["0".to_owned()];
    };
    let mut args = vec!["1".to_owned(), holder.clone()];
    args.extend([*id, *want, *ttl_us, returns.len() as u64].map(|number| number.to_string()));
    args.extend(returns.iter().flat_map(|back| [back.id.to_string(), back.tokens.to_string()]));
    args
}

fn report_arguments(report: Option<&Report>) -> Vec<String> {
    let Some(Report { holder, from, to, ttl_us }) = report else {
        return vec!["0".to_owned()];
    };
    let mut args = vec!["1".to_owned(), holder.clone()];
    args.extend([from, to, ttl_us].map(u64::to_string));
    args
}

/// The reply to a request, of the integers that the script answered.
///
/// # Errors
/// [`StoreError::BadReply`] where they are not an answer to this request.
pub fn reply(request: &TakeRequest, answer: &[i64]) -> Result<TakeReply, StoreError> {
    let mut numbers = answer.iter().copied();
    let takes = request.takes.iter().map(|take| taken(take.charges.len(), &mut numbers));
    let takes = takes.collect::<Option<_>>();
    if let (Some(takes), None) = (takes, numbers.next()) {
        return Ok(TakeReply { takes });
    }
    let detail = format!("{} integers that are no answer to {} takes", answer.len(), request.takes.len());
    Err(StoreError::BadReply { detail })
}

fn taken(charges: usize, numbers: &mut impl Iterator<Item = i64>) -> Option<Taken> {
    let verdict = numbers.next()?;
    let charges = (0..charges).map(|_| charged(numbers)).collect::<Option<_>>()?;
    match verdict {
        ADMITTED | REFUSED => Some(Taken::Decided { admitted: verdict == ADMITTED, charges }),
        UNREADABLE => {
            Some(Taken::Failed { error: "the store holds something else under one of these keys".to_owned() })
        }
        _ => None,
    }
}

fn charged(numbers: &mut impl Iterator<Item = i64>) -> Option<Charged> {
    let remaining = u64::try_from(numbers.next()?).ok()?;
    let wait_us = match numbers.next()? {
        NEVER => None,
        wait_us => Some(u64::try_from(wait_us).ok()?),
    };
    let full_us = u64::try_from(numbers.next()?).ok()?;
    let granted = u64::try_from(numbers.next()?).ok()?;
    let proxies = u64::try_from(numbers.next()?).ok()?;
    Some(Charged { remaining, wait_us, full_us, granted, proxies })
}

#[cfg(test)]
mod tests {
    use limiter::wire::Return;

    use super::*;

    fn request(charges: &[usize]) -> TakeRequest {
        let charge = r#"{"key":"rl:{1}:p:","limit":{"token_bucket":{"capacity":1,"rate":"1/s"}}}"#;
        let takes =
            charges.iter().map(|count| format!(r#"{{"charges":[{}]}}"#, vec![charge; *count].join(",")));
        serde_json::from_str(&format!(r#"{{"takes":[{}]}}"#, takes.collect::<Vec<_>>().join(","))).unwrap()
    }

    #[test]
    fn an_answer_of_another_shape_is_no_answer() {
        let request = request(&[1, 2]);
        let answer = [1, 0, 0, 7, 5, 2, 0, 3, 0, 9, 0, 0, 0, -1, 8, 0, 0];
        assert_eq!(reply(&request, &answer).unwrap().takes.len(), 2);
        assert!(reply(&request, &answer[..16]).is_err());
        assert!(reply(&request, &[&answer[..], &[0]].concat()).is_err());
        assert!(reply(&request, &[]).is_err());
        for (place, wrong) in [(0, 2), (1, -1), (2, -2), (3, -1), (4, -1), (5, -1)] {
            let mut changed = answer;
            changed[place] = wrong;
            assert!(reply(&request, &changed).is_err(), "{wrong} at {place}");
        }
    }

    #[test]
    fn what_is_asked_of_leases_and_reported_follows_its_charge() {
        let mut request = request(&[2]);
        request.takes[0].charges[0].lease = Some(LeaseAsk {
            holder: "a1".to_owned(),
            id: 7,
            want: 50,
            ttl_us: 1_000,
            returns: vec![Return { id: 5, tokens: 3 }, Return { id: 6, tokens: 0 }],
        });
        request.takes[0].charges[1].report =
            Some(Report { holder: "b2".to_owned(), from: 3, to: (1 << 53) - 1, ttl_us: 2_000 });
        let (limit, lease) = ("1 1000000 1 1 1", "1 a1 7 50 1000 2 5 3 6 0");
        let expected = format!("1 2 {limit} {lease} 0 {limit} 0 1 b2 3 9007199254740991 2000");
        assert_eq!(call(&request).args, expected.split(' ').collect::<Vec<_>>());
    }

    #[test]
    fn an_unreadable_state_fails_its_take_alone() {
        let reply = reply(&request(&[1, 1]), &[-1, 0, 0, 0, 0, 0, 1, 0, 0, 5, 0, 0]).unwrap();
        assert!(matches!(reply.takes[0], Taken::Failed { .. }));
        assert!(matches!(reply.takes[1], Taken::Decided { admitted: true, .. }));
    }
}
