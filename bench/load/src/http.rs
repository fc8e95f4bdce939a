//! As much of HTTP/1.1 as a benchmark on one machine needs: heads up to their empty line, and bodies by
//! `content-length`.

use std::io::{self, BufRead, Error, ErrorKind, Read};

/// The longest head that is read; Envoy's are a few hundred bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

const END: &[u8] = b"\r\n\r\n";

/// Reads a head into `head`, its empty line included; false where the connection ended before it.
pub(crate) fn read_head(reader: &mut impl BufRead, head: &mut Vec<u8>) -> io::Result<bool> {
    head.clear();
    while !head.ends_with(END) {
        if head.len() > MAX_HEAD_BYTES {
            return Err(Error::new(ErrorKind::InvalidData, "a head is too long"));
        }
        if reader.read_until(b'\n', head)? == 0 {
            return if head.is_empty() { Ok(false) } else { Err(ErrorKind::UnexpectedEof.into()) };
        }
    }
    Ok(true)
}

/// Reads an answer's body into `body`.
pub(crate) fn read_body(reader: &mut impl Read, head: &str, body: &mut Vec<u8>) -> io::Result<()> {
    let length = field(head, "content-length").and_then(|length| length.parse().ok());
    let length: usize =
        length.ok_or_else(|| Error::new(ErrorKind::InvalidData, "an answer has no content-length"))?;
    body.resize(length, 0);
    reader.read_exact(body)
}

/// A field of a head, by its name in lower case, as Envoy writes names.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The status of an answer's head.
pub(crate) fn status(head: &str) -> Option<u16> {
    head.split(' ').nth(1)?.parse().ok()
}
