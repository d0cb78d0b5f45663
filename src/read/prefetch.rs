//! Decoding ahead on another core.

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::mpsc;

use super::held::AbortOnDrop;
use crate::error::{Error, Result};

enum Sent<T> {
    Item(Result<T>),
    /// The end, said aloud: a channel that closes without it lost its task to a panic.
    End,
}

/// Polls `stream` in a task of its own, up to `depth` items ahead of the reader. Dropping the result ends the task.
pub fn ahead<T: Send + 'static>(stream: BoxStream<'static, Result<T>>, depth: usize) -> BoxStream<'static, Result<T>> {
    // the task starts at the first poll: a stream that is never read does nothing
    let start = (Some(stream), None);
    stream::unfold(start, move |(mut idle, mut running)| async move {
        if let Some(mut source) = idle.take() {
            let (give, take) = mpsc::channel(depth.max(1));
            let task = AbortOnDrop(tokio::spawn(async move {
                while let Some(item) = source.next().await {
                    let failed = item.is_err();
                    if give.send(Sent::Item(item)).await.is_err() || failed {
                        return;
                    }
                }
                let _ = give.send(Sent::End).await;
            }));
            running = Some((take, task));
        }
        let (mut take, task): (mpsc::Receiver<Sent<T>>, AbortOnDrop<()>) = running?;
        match take.recv().await {
            Some(Sent::Item(Ok(item))) => Some((Ok(item), (None, Some((take, task))))),
            Some(Sent::Item(Err(error))) => Some((Err(error), (None, None))),
            Some(Sent::End) => None,
            None => Some((Err(Error::internal("a reading task ended before its data")), (None, None))),
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn items_arrive_in_order_and_the_error_is_last() {
        let items = vec![Ok(1), Ok(2), Err(Error::corrupt("torn")), Ok(3)];
        let got: Vec<_> = ahead(stream::iter(items).boxed(), 1).collect().await;
        assert_eq!(got.len(), 3);
        assert!(matches!(got.as_slice(), [Ok(1), Ok(2), Err(_)]));
    }

    #[tokio::test]
    async fn a_panic_behind_the_channel_is_an_error_not_an_end() {
        let source = stream::iter(0..3).map(|i| if i == 1 { panic!("broken decoder") } else { Ok(i) }).boxed();
        let got: Vec<_> = ahead(source, 1).collect().await;
        assert!(matches!(got.as_slice(), [Ok(0), Err(_)]));
    }
}
