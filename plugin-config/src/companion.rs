//! `companion`: where the filter finds the service that owns the truth.

use core::time::Duration;

use crate::error::{Problem, Remedy};
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::words::Words;

/// Where the companion is, and how long a request waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Companion {
    /// The name of Envoy's cluster.
    pub cluster: String,
    /// [`MIN_TIMEOUT`] to [`MAX_TIMEOUT`].
    pub timeout: Duration,
}

/// The timeout where none is given.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(50);
/// The shortest timeout.
pub const MIN_TIMEOUT: Duration = Duration::from_millis(1);
/// The longest timeout: a request must not hang.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a cluster's name.
pub const MAX_CLUSTER_BYTES: usize = 256;

/// How a companion is written.
pub(crate) const FORM: &str = "use an object such as {\"cluster\": \"tidegate\"}";
const WORDS: Words = Words::new(&["cluster", "timeout"]);
const CLUSTER: &str = "use the name of an Envoy cluster, such as \"tidegate\"";
const TIMEOUT: &str = "use \"1ms\" to \"10s\"";

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Companion, Reported> {
    let fields = spot.object(&WORDS, FORM, report)?;
    let cluster = fields.required("cluster", CLUSTER, report).and_then(|spot| cluster(&spot, report));
    let timeout = fields
        .optional("timeout")
        .map_or(Ok(DEFAULT_TIMEOUT), |spot| spot.span(&(MIN_TIMEOUT..=MAX_TIMEOUT), TIMEOUT, report));
    Ok(Companion { cluster: cluster?, timeout: timeout? })
}

fn cluster(spot: &Spot<'_>, report: &mut Report) -> Result<String, Reported> {
    let name = spot.text(CLUSTER, report)?;
    let (problem, remedy) = match name.len() {
        0 => (Problem::Empty, Remedy::Do(CLUSTER)),
        1..=MAX_CLUSTER_BYTES if name.bytes().all(|byte| byte.is_ascii_graphic()) => {
            return Ok(name.to_owned());
        }
        1..=MAX_CLUSTER_BYTES => (Problem::BadCharacters, Remedy::Do("use printable ASCII without blanks")),
        _ => (Problem::TooLarge, Remedy::Do("use 256 bytes or less")),
    };
    Err(spot.refuse(problem, remedy, report))
}
