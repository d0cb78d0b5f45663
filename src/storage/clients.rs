//! An HTTP client for each runtime that asks.
//!
//! A connection is driven by a task of the runtime that opened it. Once the threads of that runtime are kept by something
//! else, or are gone, a request of another runtime over a connection of its would wait until it times out.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use parking_lot::Mutex;
use tokio::runtime::{Handle, Id};

/// Runtimes whose connections are kept, those that began last.
const KEPT: usize = 16;

/// Makes clients that share no connection between runtimes.
#[derive(Debug)]
pub(super) struct ClientPerRuntime;

impl HttpConnector for ClientPerRuntime {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let clients = Clients { options: options.clone(), known: Mutex::default() };
        // options that make no client are known at once
        clients.of_this_runtime()?;
        Ok(HttpClient::new(clients))
    }
}

#[derive(Debug)]
struct Clients {
    options: ClientOptions,
    known: Mutex<Vec<(Option<Id>, Arc<HttpClient>)>>,
}

impl Clients {
    fn of_this_runtime(&self) -> object_store::Result<Arc<HttpClient>> {
        let runtime = Handle::try_current().ok().map(|runtime| runtime.id());
        let mut known = self.known.lock();
        if let Some((_, client)) = known.iter().find(|(of, _)| *of == runtime) {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(ReqwestConnector::default().connect(&self.options)?);
        if known.len() == KEPT {
            known.remove(0);
        }
        known.push((runtime, Arc::clone(&client)));
        Ok(client)
    }
}

#[async_trait]
impl HttpService for Clients {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let client = self.of_this_runtime().map_err(|error| HttpError::new(HttpErrorKind::Connect, error))?;
        client.execute(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_have_clients_of_their_own() {
        let clients = Clients { options: ClientOptions::new(), known: Mutex::default() };
        let runtimes: Vec<_> =
            (0..=KEPT).map(|_| tokio::runtime::Builder::new_current_thread().build().unwrap()).collect();
        let of = |at: usize| runtimes[at].block_on(async { clients.of_this_runtime() }).unwrap();
        let first = of(0);
        assert!(Arc::ptr_eq(&first, &of(0)) && !Arc::ptr_eq(&first, &of(1)));
        (1..=KEPT).for_each(|at| drop(of(at)));
        assert_eq!(clients.known.lock().len(), KEPT);
        assert!(!Arc::ptr_eq(&first, &of(0)), "the connections of the first are not kept");
    }
}
