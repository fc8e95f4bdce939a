//! Reads the bodies of requests within bounds: of each, of all together, and of time.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use http_body_util::BodyExt;
use limiter::wire::MAX_BODY_BYTES;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::answer::Problem;

/// How long a caller may take to send a request's body.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// The bytes of a body that are its start: most bodies are no longer.
const START_BYTES: usize = 16 * 1024;

/// The most bytes of the starts of all bodies together, and of what follows them. They are counted apart, so
/// that callers who send long bodies slowly do not keep out those who send short ones.
const MAX_STARTS_BYTES: usize = 32 << 20;
const MAX_RESTS_BYTES: usize = 32 << 20;

/// Counts the bytes of all bodies, from their arrival until their request is answered.
#[derive(Debug)]
pub(super) struct Bodies {
    starts: Semaphore,
    rests: Semaphore,
}

/// A body with its share of the bytes that there may be.
#[derive(Debug, Default)]
pub(super) struct Held<'a> {
    bytes: Vec<u8>,
    start: Option<SemaphorePermit<'a>>,
    rest: Option<SemaphorePermit<'a>>,
}

impl Held<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Default for Bodies {
    fn default() -> Self {
        Self::new(MAX_STARTS_BYTES, MAX_RESTS_BYTES)
    }
}

impl Bodies {
    fn new(max_starts_bytes: usize, max_rests_bytes: usize) -> Self {
        Self { starts: Semaphore::new(max_starts_bytes), rests: Semaphore::new(max_rests_bytes) }
    }

    /// Reads a body to its end.
    pub(super) async fn read(&self, body: Body) -> Result<Held<'_>, Problem<'static>> {
        let read = tokio::time::timeout(BODY_TIMEOUT, self.collect(body)).await;
        read.unwrap_or(Err(Problem::BodyLate))
    }

    async fn collect(&self, mut body: Body) -> Result<Held<'_>, Problem<'static>> {
        // Where the length is said, nobody has to wait for that much.
        if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
            return Err(Problem::BodyTooLarge);
        }
        let mut held = Held::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Problem::BodyBroken)?;
            // Trailers say nothing here.
            let Ok(data) = frame.into_data() else { continue };
            if held.bytes.len() + data.len() > MAX_BODY_BYTES {
                return Err(Problem::BodyTooLarge);
            }
            let start = data.len().min(START_BYTES.saturating_sub(held.bytes.len()));
            hold(&self.starts, &mut held.start, start)?;
            hold(&self.rests, &mut held.rest, data.len() - start)?;
            held.bytes.extend_from_slice(&data);
        }
        Ok(held)
    }
}

fn hold<'a>(
    left: &'a Semaphore,
    held: &mut Option<SemaphorePermit<'a>>,
    bytes: usize,
) -> Result<(), Problem<'static>> {
    let bytes = u32::try_from(bytes).map_err(|_| Problem::BodyTooLarge)?;
    let more = left.try_acquire_many(bytes).map_err(|_| Problem::Overloaded)?;
    match held {
        Some(held) => held.merge(more),
        None => *held = Some(more),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use http_body_util::Full;

    use super::*;

    async fn read(bodies: &Bodies, length: usize) -> Result<Held<'_>, Problem<'static>> {
        bodies.read(Body::new(Full::new(Bytes::from(vec![b' '; length])))).await
    }

    #[tokio::test]
    async fn long_bodies_are_refused_where_there_are_many_and_short_ones_are_not() {
        let bodies = Bodies::new(3 * START_BYTES, 2 * MAX_BODY_BYTES);
        let first = read(&bodies, MAX_BODY_BYTES).await.ok().unwrap();
        let second = read(&bodies, MAX_BODY_BYTES).await.ok().unwrap();
        assert_eq!(second.bytes().len(), MAX_BODY_BYTES);
        assert!(matches!(read(&bodies, MAX_BODY_BYTES).await, Err(Problem::Overloaded)));
        let short = read(&bodies, START_BYTES).await;
        assert!(short.is_ok());
        assert!(matches!(read(&bodies, START_BYTES).await, Err(Problem::Overloaded)), "the starts are full");
        drop((first, short));
        assert!(read(&bodies, MAX_BODY_BYTES).await.is_ok(), "what was answered does not count");
    }

    #[tokio::test]
    async fn a_body_that_says_that_it_is_too_long_is_not_read() {
        let bodies = Bodies::new(0, 0);
        assert!(matches!(read(&bodies, MAX_BODY_BYTES + 1).await, Err(Problem::BodyTooLarge)));
        assert!(read(&bodies, 0).await.is_ok());
    }
}
