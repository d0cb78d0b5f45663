//! Stores that speak the S3 API: options, keys, time limits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use super::clients::ClientPerRuntime;
use super::counting::RetryPolicy;
use super::failure::is_cut_answer;
use crate::error::{Error, Result};

/// Options by the names that Paimon (`s3.…`), Hadoop (`fs.s3a.…`) and the AWS tools use, and what they set.
const OPTIONS: &[(&[&str], AmazonS3ConfigKey)] = &[
    (&["s3.endpoint", "fs.s3a.endpoint", "fs.oss.endpoint"], AmazonS3ConfigKey::Endpoint),
    (&["s3.region", "s3.endpoint.region", "fs.s3a.endpoint.region"], AmazonS3ConfigKey::Region),
    (&["s3.access-key", "s3.access.key", "fs.s3a.access.key", "fs.oss.accessKeyId"], AmazonS3ConfigKey::AccessKeyId),
    (
        &["s3.secret-key", "s3.secret.key", "fs.s3a.secret.key", "fs.oss.accessKeySecret"],
        AmazonS3ConfigKey::SecretAccessKey,
    ),
    (&["s3.session-token", "s3.session.token", "fs.s3a.session.token"], AmazonS3ConfigKey::Token),
    (&["s3.anonymous"], AmazonS3ConfigKey::SkipSignature),
];

/// Path style is the default; these turn it on or off.
const PATH_STYLE: &[&str] = &["s3.path-style-access", "s3.path.style.access", "fs.s3a.path.style.access"];

/// What bounds requests.
const LIMITS: &[&str] = &["storage.timeout", "storage.connect-timeout", "storage.retries", "storage.retry-timeout"];

/// Refuses options that are none of a store's.
pub(super) fn check_options(options: &BTreeMap<String, String>) -> Result<()> {
    let names = || OPTIONS.iter().flat_map(|(names, _)| *names).chain(PATH_STYLE).chain(LIMITS).copied();
    let of_aws = |name: &str| name.starts_with("aws_") && name.parse::<AmazonS3ConfigKey>().is_ok();
    let Some(unknown) = options.keys().find(|name| !of_aws(name) && !names().any(|known| known == name.as_str()))
    else {
        return Ok(());
    };
    let first = OPTIONS.iter().filter_map(|(names, _)| names.first()).chain(PATH_STYLE.first()).chain(LIMITS);
    let first: Vec<&str> = first.copied().collect();
    Err(Error::invalid(format!("there is no option '{unknown}' of an object store"))
        .with_code("StorageOption")
        .with_context("option", unknown)
        .with_hint(format!("known: {}, their names in Hadoop, and aws_… as the AWS tools have them", first.join(", "))))
}

/// Opens a bucket. What options leave open comes from the environment (`AWS_ACCESS_KEY_ID`, `AWS_REGION`,
/// `AWS_ENDPOINT_URL`, …).
pub(super) fn open(
    scheme: &str,
    bucket: &str,
    options: &BTreeMap<String, String>,
) -> Result<(Arc<dyn ObjectStore>, RetryPolicy)> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    for (names, key) in OPTIONS {
        if let Some(value) = names.iter().find_map(|name| options.get(*name)) {
            builder = builder.with_config(*key, value);
        }
    }
    for (name, value) in options {
        if let Some(key) = name.starts_with("aws_").then(|| name.parse::<AmazonS3ConfigKey>().ok()).flatten() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some((name, value)) = PATH_STYLE.iter().find_map(|name| options.get(*name).map(|value| (*name, value))) {
        builder = builder.with_virtual_hosted_style_request(!flag(name, value)?);
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    if scheme != "s3" && endpoint.is_none() {
        return Err(Error::invalid(format!(
            "{scheme}://{bucket} is reached through the S3 API and needs its endpoint"
        ))
        .with_code("StorageOption")
        .with_context("option", "s3.endpoint")
        .with_hint("set the option s3.endpoint or AWS_ENDPOINT_URL"));
    }
    let plain_http = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    let client = ClientOptions::new()
        .with_timeout(seconds(options, "storage.timeout", 30)?)
        .with_connect_timeout(seconds(options, "storage.connect-timeout", 5)?)
        .with_allow_http(plain_http);
    let retry = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(10),
            base: 2.0,
        },
        max_retries: number(options, "storage.retries", 8)?,
        retry_timeout: seconds(options, "storage.retry-timeout", 60)?,
    };
    let store =
        builder.with_client_options(client).with_retry(retry).with_http_connector(ClientPerRuntime).build().map_err(
            |e| {
                Error::invalid(format!("cannot open the bucket: {e}"))
                    .with_code("StorageOption")
                    .with_context("bucket", format!("{scheme}://{bucket}"))
                    .with_source(e)
            },
        )?;
    // it retries and limits by itself, knowing which requests may be repeated; only cut answers are left to us
    let policy =
        RetryPolicy { retries: 3, first_pause: Duration::from_millis(50), try_limit: None, passes: is_cut_answer };
    Ok((Arc::new(store), policy))
}

fn bad(name: &str, value: &str, wanted: &str) -> Error {
    Error::invalid(format!("option {name} is '{value}', not {wanted}"))
        .with_code("StorageOption")
        .with_context("option", name)
}

fn flag(name: &str, value: &str) -> Result<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(bad(name, value, "true or false")),
    }
}

fn number(options: &BTreeMap<String, String>, name: &str, default: usize) -> Result<usize> {
    match options.get(name) {
        None => Ok(default),
        Some(value) => value.trim().parse().map_err(|_| bad(name, value, "a number")),
    }
}

/// Whole seconds, `30`, `30s` or `30 s`; milliseconds as `500ms`.
fn seconds(options: &BTreeMap<String, String>, name: &str, default: u64) -> Result<Duration> {
    let Some(value) = options.get(name) else { return Ok(Duration::from_secs(default)) };
    let text = value.trim();
    let (digits, millis) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (text.strip_suffix('s').unwrap_or(text), 1000),
    };
    let count: u64 = digits.trim().parse().map_err(|_| bad(name, value, "a time such as '30 s' or '500 ms'"))?;
    Ok(Duration::from_millis(count.saturating_mul(millis)))
}

#[cfg(test)]
mod tests;
