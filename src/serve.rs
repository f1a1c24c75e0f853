//! The operator's own HTTP port: `/livez` and `/readyz`, with `?verbose` as the API server has it.
//!
//! Nothing of the operator's work goes through it, and without `--health-address` it is not there.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tracing::{error, info};

use crate::controller::Controller;
use crate::health::Report;
use crate::lease::Leadership;

/// What the answers are made of.
#[derive(Clone)]
struct Subject {
    controller: Arc<Controller>,
    leadership: Arc<Leadership>,
}

/// Takes the port. Errors name the flag to change.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    let cannot =
        |error: std::io::Error| format!("cannot listen on {address}: {error}; choose another `--health-address`");
    let listener = TcpListener::bind(address).await.map_err(cannot)?;
    info!("health at http://{}", listener.local_addr().map_err(cannot)?);
    Ok(listener)
}

/// Answers until it is dropped.
pub async fn serve(listener: TcpListener, controller: Arc<Controller>, leadership: Arc<Leadership>) {
    let router = Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .with_state(Subject { controller, leadership });
    if let Err(error) = axum::serve(listener, router).await {
        error!("the health port is closed: {error}");
    }
}

async fn livez(State(subject): State<Subject>, RawQuery(query): RawQuery) -> Response {
    answer(&subject.controller.live(&subject.leadership), query.as_deref())
}

async fn readyz(State(subject): State<Subject>, RawQuery(query): RawQuery) -> Response {
    answer(&subject.controller.ready(), query.as_deref())
}

fn answer(report: &Report, query: Option<&str>) -> Response {
    let verbose = query.unwrap_or_default().split('&').any(|part| part.split('=').next() == Some("verbose"));
    match (report.is_good(), verbose) {
        (true, false) => "ok".into_response(),
        (true, true) => report.to_string().into_response(),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, report.to_string()).into_response(),
    }
}
