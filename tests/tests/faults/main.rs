//! What goes wrong around the filter, and what clients see of it: no hang, no crash, and a decision that
//! says whether the limit refused or could not be checked.

mod answers;
mod batches;
mod breaker;
mod companion_away;
mod crowd;
mod expected;
mod layers;
mod leaving;
mod many_at_once;
mod outage;
mod random_answers;
mod requests;
mod store_away;
