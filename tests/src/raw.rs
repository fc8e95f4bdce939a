//! Requests that a decent HTTP client refuses to send.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(10);

/// Sends bytes on a connection of its own and returns all that comes back until the other side
/// closes; let the request say `connection: close`. Panics where that takes ten seconds.
pub async fn raw_request(addr: SocketAddr, request: &[u8]) -> Vec<u8> {
    let exchange = async {
        let mut stream = TcpStream::connect(addr).await?;
        stream.write_all(request).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(DEADLINE, exchange).await.expect("the server answers and closes in time");
    answer.expect("the connection holds until the answer is whole")
}
