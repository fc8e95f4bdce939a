//! The beginning of a connection: whoever connects has to say something whole before a deadline.
//!
//! The HTTP library waits without a limit for the bytes that tell the versions apart, so that connections
//! that send none, or the beginning of a preface, would stay for ever and hold the places of others. What
//! comes after the beginning is the library's: an HTTP/2 connection may be silent for as long as it likes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// What every HTTP/2 connection starts with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream that fails to read once its deadline is over and its beginning is not complete.
pub(super) struct Opening<S> {
    stream: S,
    progress: Progress,
    deadline: Pin<Box<Sleep>>,
}

impl<S> Opening<S> {
    /// A stream of which nothing was read yet.
    pub(super) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, progress: Progress::default(), deadline: Box::pin(tokio::time::sleep(timeout)) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Opening<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.progress.complete {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        if this.deadline.as_mut().poll(context).is_ready() {
            let late = io::Error::new(io::ErrorKind::TimedOut, "nothing whole came in time");
            return Poll::Ready(Err(late));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        this.progress.look_at(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opening<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// How far a beginning has come: to a whole preface, or to the empty line after a request's header.
#[derive(Debug, Default)]
struct Progress {
    seen: usize,
    is_no_preface: bool,
    /// A line has ended and no other has begun.
    after_line: bool,
    complete: bool,
}

impl Progress {
    fn look_at(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.complete {
                return;
            }
            self.is_no_preface |= PREFACE.get(self.seen) != Some(byte);
            self.seen += 1;
            let is_empty_line = *byte == b'\n' && self.after_line;
            self.after_line = *byte == b'\n' || (*byte == b'\r' && self.after_line);
            // The preface has an empty line of its own.
            self.complete = if self.is_no_preface { is_empty_line } else { self.seen == PREFACE.len() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many bytes a beginning is complete, read at once and byte by byte.
    fn complete_after(text: &[u8]) -> Option<usize> {
        let mut progress = Progress::default();
        let after = text.chunks(1).position(|byte| {
            progress.look_at(byte);
            progress.complete
        });
        let mut at_once = Progress::default();
        at_once.look_at(text);
        assert_eq!(at_once.complete, after.is_some(), "{text:?}");
        after.map(|index| index + 1)
    }

    #[test]
    fn a_beginning_is_complete_with_the_preface_or_the_first_header() {
        assert_eq!(complete_after(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nand frames"), Some(24));
        assert_eq!(complete_after(b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET /"), Some(27));
        assert_eq!(complete_after(b"GET / HTTP/1.1\nhost: a\n\n"), Some(24));
        assert_eq!(complete_after(b"POST / HTTP/1.1\r\n\r\n"), Some(19));
    }

    #[test]
    fn parts_of_a_beginning_are_not_complete() {
        let longer = [b"GET / HTTP/1.1\r\n".as_slice(), b"a: b\r\n".repeat(1_000).as_slice()].concat();
        for text in
            [b"".as_slice(), b"P", b"PRI * HT", b"PRI * HTTP/2.0\r\n\r\n", &PREFACE[..23], b"GET /", &longer]
        {
            assert_eq!(complete_after(text), None, "{text:?}");
        }
    }
}
