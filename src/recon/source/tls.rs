//! Whether a connection is encrypted, and whom it trusts.

use crate::error::{Error, Result};

/// What is asked of a connection. The servers' own names for it are taken: `require` and `REQUIRED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsMode {
    /// No encryption.
    Disable,
    /// Encrypted when the server can; nobody is verified.
    Prefer,
    /// Encrypted; nobody is verified.
    Require,
    /// Encrypted, with a certificate of an authority that is trusted.
    VerifyCa,
    /// The same, and the certificate is the host's.
    VerifyFull,
}

impl TlsMode {
    pub(super) fn parse(text: &str) -> Result<Self> {
        Ok(match text.to_ascii_lowercase().replace('_', "-").as_str() {
            "disable" | "disabled" => Self::Disable,
            "prefer" | "preferred" => Self::Prefer,
            "require" | "required" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" | "verify-identity" => Self::VerifyFull,
            _ => {
                return Err(Error::invalid(format!("sslmode={text} is not known"))
                    .with_code("SourceAddress")
                    .with_hint("write disable, prefer, require, verify-ca or verify-full"));
            }
        })
    }
}

/// Makes the one provider of ciphers that is built in the program's, unless the program has chosen its own.
#[cfg(feature = "mysql")]
pub(super) fn provide() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// The authorities that the machine trusts, or those of a file.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn trusted(file: Option<&std::path::Path>) -> Result<Vec<rustls::pki_types::CertificateDer<'static>>> {
    let failed = |message: String| Error::invalid(message).with_code("SourceAddress");
    if let Some(file) = file {
        use rustls::pki_types::pem::PemObject;
        let told = |e: &dyn std::fmt::Display| failed(format!("no certificates in {}: {e}", file.display()));
        let found = rustls::pki_types::CertificateDer::pem_file_iter(file).map_err(|e| told(&e))?;
        return found.collect::<std::result::Result<Vec<_>, _>>().map_err(|e| told(&e));
    }
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(failed("the machine trusts no authorities for certificates".into())
            .with_hint("name a file with sslrootcert=, or use sslmode=require, which verifies nobody"));
    }
    Ok(found.certs)
}

/// What PostgreSQL's driver needs of it.
#[cfg(feature = "postgres")]
pub(super) mod client {
    use std::path::Path;
    use std::sync::Arc;

    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{
        CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
    };

    use super::TlsMode;
    use crate::error::{Error, Result};

    /// The settings of a client.
    pub(in super::super) fn config(mode: TlsMode, file: Option<&Path>) -> Result<ClientConfig> {
        let failed = |e: &dyn std::fmt::Display| Error::invalid(format!("no TLS: {e}")).with_code("SourceAddress");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = match mode {
            TlsMode::VerifyCa | TlsMode::VerifyFull => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(super::trusted(file)?);
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
                Some(verifier.build().map_err(|e| failed(&e))?)
            }
            _ => None,
        };
        let verifier = Verifier { authorities, any_host: mode != TlsMode::VerifyFull, provider: Arc::clone(&provider) };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| failed(&e))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(config)
    }

    /// Verifies as much as is asked for.
    #[derive(Debug)]
    struct Verifier {
        authorities: Option<Arc<WebPkiServerVerifier>>,
        any_host: bool,
        provider: Arc<CryptoProvider>,
    }

    impl ServerCertVerifier for Verifier {
        fn verify_server_cert(
            &self,
            end_entity: &CertificateDer<'_>,
            intermediates: &[CertificateDer<'_>],
            server_name: &ServerName<'_>,
            ocsp: &[u8],
            now: UnixTime,
        ) -> std::result::Result<ServerCertVerified, TlsError> {
            let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
            match authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp, now) {
                Err(TlsError::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                )) if self.any_host => Ok(ServerCertVerified::assertion()),
                verified => verified,
            }
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
            verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
            verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    }
}
