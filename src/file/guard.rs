//! Panics of decoders as errors.
//!
//! The decoders of Parquet and ORC index and unwrap on what they find in a file: a damaged footer or page, or a time
//! zone that does not exist, makes them panic (orc-rust 0.9 unwraps the writer's zone and slices the tail by lengths
//! of the file). A reader of other people's files must answer with the file's name instead.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures::future::poll_fn;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use crate::error::caught;

/// A step of a third-party decoder; a panic is what `told` makes of its words.
pub(crate) async fn guarded<T, E>(step: impl Future<Output = Result<T, E>>, told: impl Fn(&str) -> E) -> Result<T, E> {
    let mut step = pin!(step);
    poll_fn(|cx| match caught(|| step.as_mut().poll(cx)) {
        Ok(polled) => polled,
        Err(words) => Poll::Ready(Err(told(&words))),
    })
    .await
}

/// A stream of a third-party decoder; it ends after a panic, which `told` turns into its last item.
pub(crate) fn guarded_stream<T: Send + 'static, E: Send + 'static>(
    stream: BoxStream<'static, Result<T, E>>,
    told: impl Fn(&str) -> E + Send + Unpin + 'static,
) -> BoxStream<'static, Result<T, E>> {
    Guarded { stream: Some(stream), told }.boxed()
}

struct Guarded<T, E, F> {
    stream: Option<BoxStream<'static, Result<T, E>>>,
    told: F,
}

impl<T, E, F: Fn(&str) -> E + Unpin> Stream for Guarded<T, E, F> {
    type Item = Result<T, E>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(stream) = this.stream.as_mut() else { return Poll::Ready(None) };
        match caught(|| stream.poll_next_unpin(cx)) {
            Ok(polled) => {
                if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
                    this.stream = None;
                }
                polled
            }
            Err(words) => {
                this.stream = None;
                Poll::Ready(Some(Err((this.told)(&words))))
            }
        }
    }
}
