//! What TLS needs, from files.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use native_tls::{Identity, Protocol};
use tokio_native_tls::TlsAcceptor;

use crate::exit::{Code, Failed};

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Where the server's certificate is, and its key.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    /// PEM: the certificate, and those between it and its authority.
    pub(crate) certificate: PathBuf,
    /// PEM: the key, as PKCS #8.
    pub(crate) key: PathBuf,
}

impl TlsFiles {
    /// # Errors
    /// If a file cannot be read, or is not what it should be.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, Failed> {
        let Self { certificate, key } = self;
        let wrong = |error: &dyn fmt::Display| {
            let message = format!(
                "control: TLS with certificate {} and key {}: {error}; both must be PEM and belong together, the key \
                 as PKCS #8 (`openssl pkcs8 -topk8 -nocrypt` makes it that)",
                certificate.display(),
                key.display()
            );
            Failed::new(Code::Configuration, message)
        };
        let identity = Identity::from_pkcs8(&read(certificate)?, &read(key)?);
        let identity = identity.map_err(|error| wrong(&error))?;
        let mut builder = native_tls::TlsAcceptor::builder(identity);
        builder.min_protocol_version(Some(Protocol::Tlsv12));
        Ok(builder.build().map_err(|error| wrong(&error))?.into())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).map_err(
        |error| {
            let message = format!("control: {}: {error}", path.display());
            Failed::new(Code::Configuration, message)
        },
    )?;
    Ok(bytes)
}
