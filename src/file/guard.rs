//! Panics of decoders as errors.
//!
//! The decoders of Parquet and ORC index and unwrap on what they find in a file: a damaged footer or page, or a time
//! zone that does not exist, makes them panic (orc-rust 0.9 unwraps the writer's zone and slices the tail by lengths
//! of the file). A reader of other people's files must answer with the file's name instead.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};

use super::access::Access;
use crate::error::{Error, Result};

/// A step of a third-party decoder.
pub(crate) async fn guarded<T>(access: &Access, step: impl Future<Output = Result<T>>) -> Result<T> {
    // what the step owned is dropped with it; nothing half-made is seen again
    match AssertUnwindSafe(step).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => Err(told(access, panic.as_ref())),
    }
}

/// A stream of a third-party decoder; it ends after a panic.
pub(crate) fn guarded_stream<T: Send + 'static>(
    access: &Access,
    stream: BoxStream<'static, Result<T>>,
) -> BoxStream<'static, Result<T>> {
    Guarded { access: access.clone(), stream: Some(stream) }.boxed()
}

struct Guarded<T> {
    access: Access,
    stream: Option<BoxStream<'static, Result<T>>>,
}

impl<T> Stream for Guarded<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(stream) = this.stream.as_mut() else { return Poll::Ready(None) };
        match catch_unwind(AssertUnwindSafe(|| stream.poll_next_unpin(cx))) {
            Ok(polled) => {
                if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
                    this.stream = None;
                }
                polled
            }
            Err(panic) => {
                this.stream = None;
                Poll::Ready(Some(Err(told(&this.access, panic.as_ref()))))
            }
        }
    }
}

fn told(access: &Access, panic: &(dyn Any + Send)) -> Error {
    let words = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no words".to_string());
    access.damaged(format!("its decoder gave up: {words}"))
}
