//! A client of the Redis protocol that is as small as a test needs: one connection, one command
//! at a time. It shares no code with the companion, so it cannot share its mistakes.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(5);

/// A reply of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A status such as `OK`.
    Simple(String),
    /// An error, with its code as the first word.
    Error(String),
    /// An integer.
    Int(i64),
    /// A string of bytes; `None` where the key does not exist.
    Bulk(Option<Vec<u8>>),
    /// A list of replies.
    Array(Vec<Reply>),
}

impl Reply {
    /// The text of a status, an error or a string; empty for what does not exist.
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) => text.clone(),
            Self::Int(number) => number.to_string(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned(),
            Self::Array(_) => panic!("a list has no text: {self:?}"),
        }
    }

    /// The integer, also where the store wrote it as a string.
    pub fn int(&self) -> i64 {
        self.text().parse().unwrap_or_else(|_| panic!("not an integer: {self:?}"))
    }
}

/// A connection to a store.
#[derive(Debug)]
pub struct Resp {
    stream: BufStream<TcpStream>,
}

impl Resp {
    /// Connects; `Err` where nobody listens.
    pub async fn connect(addr: SocketAddr) -> std::io::Result<Self> {
        let stream = timeout(DEADLINE, TcpStream::connect(addr)).await??;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufStream::new(stream) })
    }

    /// Sends one command and reads its reply; an error of the store is a [`Reply::Error`].
    pub async fn command<B: AsRef<[u8]>>(&mut self, words: &[B]) -> std::io::Result<Reply> {
        let mut message = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            let word = word.as_ref();
            message.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            message.extend_from_slice(word);
            message.extend_from_slice(b"\r\n");
        }
        timeout(DEADLINE, async {
            self.stream.write_all(&message).await?;
            self.stream.flush().await?;
            self.read().await
        })
        .await?
    }

    /// Reads what the store sends without being asked again, as after `MONITOR`.
    pub async fn next(&mut self) -> std::io::Result<Reply> {
        timeout(DEADLINE, self.read()).await?
    }

    async fn read(&mut self) -> std::io::Result<Reply> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let (kind, rest) = line.trim_end().split_at(1);
        Ok(match kind {
            "+" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Int(number(rest)?),
            "$" => match usize::try_from(number(rest)?) {
                Ok(length) => Reply::Bulk(Some(self.read_bulk(length).await?)),
                Err(_) => Reply::Bulk(None),
            },
            "*" => {
                let mut items = Vec::new();
                for _ in 0..number(rest)?.max(0) {
                    items.push(Box::pin(self.read()).await?);
                }
                Reply::Array(items)
            }
            _ => return Err(std::io::Error::other(format!("not a reply: {line:?}"))),
        })
    }

    async fn read_bulk(&mut self, length: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes).await?;
        bytes.truncate(length);
        Ok(bytes)
    }
}

fn number(text: &str) -> std::io::Result<i64> {
    text.parse().map_err(std::io::Error::other)
}
