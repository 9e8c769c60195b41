//! A server on this machine that plays the hosts of the catalogue: a proxy that answers every request itself, over http and, with the
//! certificate in `tls/`, over https. It breaks off, lies, redirects and dawdles as it is told.
#![allow(dead_code)] // each test file uses its own part

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is asked for.
pub struct Request {
    /// As `https://host/path`.
    pub address: String,
    /// The first byte wanted.
    pub start: usize,
    /// How often the address was asked for before.
    pub before: usize,
}

/// What the server does.
pub enum Reply {
    /// Sends what is asked for.
    Honest(Vec<u8>),
    /// Sends so many bytes, and ends the connection.
    Breaks(Vec<u8>, usize),
    /// Sends the whole file, whatever range is asked for.
    Whole(Vec<u8>),
    /// Sends so many bytes at a time with a pause after each.
    Slow(Vec<u8>, usize, Duration),
    /// Sends so many bytes, and then nothing for so long.
    Stalls(Vec<u8>, usize, Duration),
    /// Sends elsewhere.
    Redirect(String),
    /// Answers with a status alone.
    Status(u16),
}

/// The server; it ends with the test's process.
pub struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

/// A file beside this one.
fn fixture(name: &str) -> String {
    format!("{}/tests/support/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

impl Server {
    /// Answers by a function.
    pub fn new(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server { port: listener.local_addr().unwrap().port(), seen: Arc::default() };
        let certificates = CertificateDer::pem_file_iter(fixture("server.pem")).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key).unwrap();
        let (config, seen, reply) = (Arc::new(config), server.seen.clone(), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, seen, reply) = (config.clone(), seen.clone(), reply.clone());
                // a client that goes away is no trouble of the test
                std::thread::spawn(move || connection(stream, config, &seen, &*reply).ok());
            }
        });
        server
    }

    /// Its address without a proxy, as of a mirror.
    pub fn mirror(&self) -> String {
        format!("http://127.0.0.1:{}/mirror/", self.port)
    }

    /// Sends all requests of a program here, and has it trust the certificate.
    pub fn plays_hosts_of(&self, command: &mut Command) {
        command.env("https_proxy", format!("http://127.0.0.1:{}", self.port));
        command.env("SSL_CERT_FILE", fixture("authority.pem"));
    }

    /// The requests since the last call: address, and from which byte on if not from the first.
    pub fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

/// What comes before a body.
struct Head(Vec<String>);

impl Head {
    fn read(stream: &mut impl Read) -> std::io::Result<Head> {
        // byte by byte: what follows a CONNECT belongs to TLS
        let mut bytes = vec![];
        while !bytes.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            bytes.push(byte[0]);
        }
        BufReader::new(&bytes[..]).lines().collect::<Result<_, _>>().map(Head)
    }

    /// What stands second on its first line.
    fn target(&self) -> &str {
        self.0[0].split(' ').nth(1).unwrap_or_default()
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.iter().filter_map(|line| line.split_once(": "));
        fields.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

fn connection(
    mut stream: TcpStream,
    config: Arc<ServerConfig>,
    seen: &Mutex<Vec<String>>,
    reply: &(dyn Fn(&Request) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let head = Head::read(&mut stream)?;
    if !head.0[0].starts_with("CONNECT ") {
        let base = format!("http://{}", head.field("host").unwrap_or_default());
        return answer(&mut stream, &base, &head, seen, reply);
    }
    let (host, port) = head.target().split_once(':').unwrap();
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    if port == "443" {
        let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        let inner = Head::read(&mut stream)?;
        answer(&mut stream, &format!("https://{host}"), &inner, seen, reply)?;
        stream.conn.send_close_notify();
        return stream.conn.complete_io(&mut stream.sock).map(|_| ());
    }
    let inner = Head::read(&mut stream)?;
    answer(&mut stream, &format!("http://{host}"), &inner, seen, reply)
}

fn answer(
    stream: &mut impl Write,
    base: &str,
    head: &Head,
    seen: &Mutex<Vec<String>>,
    reply: &(dyn Fn(&Request) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let address = format!("{base}{}", head.target());
    let range = head.field("range").and_then(|r| r.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let request = {
        let mut seen = seen.lock().unwrap();
        let before = seen.iter().filter(|s| s.split(' ').next() == Some(&address)).count();
        seen.push(range.map_or(address.clone(), |start| format!("{address} {start}")));
        Request { address, start: range.unwrap_or(0), before }
    };
    let reply = reply(&request);
    let start = if matches!(reply, Reply::Whole(_)) { 0 } else { request.start };
    let close = "Connection: close\r\n\r\n";
    let (bytes, step, pause) = match reply {
        Reply::Status(status) => {
            return stream.write_all(format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\n{close}").as_bytes());
        }
        Reply::Redirect(to) => {
            let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n{close}");
            return stream.write_all(head.as_bytes());
        }
        Reply::Honest(bytes) | Reply::Whole(bytes) => (bytes, usize::MAX, Duration::ZERO),
        Reply::Breaks(bytes, step) => (bytes, step, Duration::MAX),
        Reply::Slow(bytes, step, pause) => (bytes, step, pause),
        Reply::Stalls(bytes, step, pause) => {
            begin(stream, &bytes, start, close)?;
            stream.write_all(&bytes[start..start + step])?;
            stream.flush()?;
            std::thread::sleep(pause);
            return Ok(());
        }
    };
    begin(stream, &bytes, start, close)?;
    for chunk in bytes[start..].chunks(step) {
        stream.write_all(chunk)?;
        stream.flush()?;
        if pause == Duration::MAX {
            return Ok(());
        }
        std::thread::sleep(pause);
    }
    Ok(())
}

/// The head of an answer with a body.
fn begin(stream: &mut impl Write, bytes: &[u8], start: usize, close: &str) -> std::io::Result<()> {
    let all = bytes.len();
    let head = match start {
        0 => format!("HTTP/1.1 200 OK\r\nContent-Length: {all}\r\n{close}"),
        _ if start >= all => format!("HTTP/1.1 416 Range\r\nContent-Length: 0\r\n{close}"),
        _ => format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {start}-{}/{all}\r\nContent-Length: {}\r\n{close}",
            all - 1,
            all - start
        ),
    };
    stream.write_all(head.as_bytes())
}
