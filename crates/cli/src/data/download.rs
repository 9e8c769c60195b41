//! Where the bytes of a file come from: a folder, or a server that is asked for the rest of it.

use minvel::Error;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

/// A place that may hold a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// On a disk.
    File(PathBuf),
    /// Behind an address of http or https.
    Address(String),
}

/// The rest of a file: how many bytes of it the sender leaves out since they are here already, and the others.
pub struct Rest {
    /// Bytes left out.
    pub skipped: u64,
    /// The others.
    pub bytes: Box<dyn Read>,
}

/// Opens sources; keeps connections to servers.
pub struct Client {
    #[cfg(feature = "fetch")]
    agent: ureq::Agent,
}

impl Source {
    /// Its path or address.
    pub fn text(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Address(address) => address.clone(),
        }
    }
}

impl Client {
    /// Opens a file from byte `start` on; an error is the reason in words.
    pub fn open(&self, source: &Source, start: u64) -> Result<Rest, String> {
        match source {
            Source::File(path) => {
                let opened = File::open(path).and_then(|mut file| file.seek(SeekFrom::Start(start)).map(|_| file));
                let file = opened.map_err(|e| e.to_string())?;
                Ok(Rest { skipped: start, bytes: Box::new(file) })
            }
            Source::Address(address) => self.request(address, start),
        }
    }
}

#[cfg(feature = "fetch")]
impl Client {
    /// A client that gives up on a server that is silent for so long.
    pub fn new(patience: Duration) -> Result<Client, Error> {
        let mut config = ureq::Agent::config_builder()
            .timeout_resolve(Some(patience))
            .timeout_connect(Some(patience))
            .timeout_recv_response(Some(patience))
            .timeout_per_read(Some(patience))
            .user_agent(concat!("minvel/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false);
        if let Some(path) = std::env::var_os("SSL_CERT_FILE").filter(|v| !v.is_empty()).map(PathBuf::from) {
            config = config.tls_config(trusting(&path)?);
        }
        Ok(Client { agent: config.build().into() })
    }

    /// Asks a server for the rest of a file.
    fn request(&self, address: &str, start: u64) -> Result<Rest, String> {
        let mut asked = self.agent.get(address);
        if start > 0 {
            asked = asked.header("Range", format!("bytes={start}-"));
        }
        let response = asked.call().map_err(|e| e.to_string())?;
        let range = response.headers().get("content-range").and_then(|v| v.to_str().ok());
        let skipped = match response.status().as_u16() {
            200 => 0,
            206 if range.is_some_and(|r| r.starts_with(&format!("bytes {start}-"))) => start,
            // the part here is longer than the file there: it is of something else
            206 | 416 if start > 0 => return self.request(address, 0),
            404 => return Err("not found on the server (404)".into()),
            status => return Err(format!("the server answered with status {status}")),
        };
        let bytes = response.into_body().into_with_config().limit(u64::MAX).reader();
        Ok(Rest { skipped, bytes: Box::new(bytes) })
    }
}

/// Whether a server was silent for too long.
#[cfg(feature = "fetch")]
pub fn timed_out(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    error.kind() == std::io::ErrorKind::TimedOut || matches!(inner, Some(ureq::Error::Timeout(_)))
}

/// Trust in the certificates of a file alone.
#[cfg(feature = "fetch")]
fn trusting(path: &std::path::Path) -> Result<ureq::tls::TlsConfig, Error> {
    use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
    let pem = std::fs::read(path).map_err(|e| Error::config(format!("SSL_CERT_FILE: {}: {e}", path.display())))?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    match certificates.is_empty() {
        true => Err(Error::config(format!("SSL_CERT_FILE: {} contains no PEM certificates", path.display()))),
        false => Ok(TlsConfig::builder().root_certs(RootCerts::new_with_certs(&certificates)).build()),
    }
}

/// Folders are never silent.
#[cfg(not(feature = "fetch"))]
pub fn timed_out(_: &std::io::Error) -> bool {
    false
}

#[cfg(not(feature = "fetch"))]
impl Client {
    /// A client for folders only.
    pub fn new(_: Duration) -> Result<Client, Error> {
        Ok(Client {})
    }

    fn request(&self, _: &str, _: u64) -> Result<Rest, String> {
        Err("this build of minvel cannot download; rebuild it with the feature `fetch`".into())
    }
}
