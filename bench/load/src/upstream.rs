//! An upstream that costs little, so that a benchmark of Envoy is not one of what stands behind it.

use std::error::Error;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use crate::http;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\nok\n";

/// Serves until the process is ended.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?.port());
    for stream in listener.incoming() {
        let stream = stream?;
        // An Envoy that goes away is no failure of the upstream.
        thread::spawn(move || serve(&stream));
    }
    Ok(())
}

/// Requests of benchmarks have no bodies.
fn serve(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut head) = (BufReader::new(stream), Vec::new());
    while http::read_head(&mut reader, &mut head)? {
        stream.write_all(ANSWER)?;
    }
    Ok(())
}
