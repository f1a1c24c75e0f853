//! `network-operator run`: the operator itself, in a cluster or as a local process.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::info;

use crate::cluster::Cluster;
use crate::controller::{Controller, Options};
use crate::lease::{self, Leadership, Settings};
use crate::reload::RuleFiles;
use crate::serve;
use crate::telemetry::log;

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rule files, or folders with rule files.
    #[arg(long, value_name = "PATH", num_args = 1.., env = "NETWORK_OPERATOR_RULES", value_delimiter = ',', default_value = "rules")]
    rules: Vec<PathBuf>,
    /// Kubeconfig file; without it KUBECONFIG, ~/.kube/config, or the pod's service account is used.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Work in this namespace only; may be given several times. Without it: in all.
    #[arg(long, value_name = "NAMESPACE", env = "NETWORK_OPERATOR_NAMESPACES", value_delimiter = ',')]
    namespace: Vec<String>,
    /// Elect a leader by Lease, so that of several operators only one writes; `--leader-elect=false` switches it off.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    leader_elect: bool,
    /// Name of the Lease.
    #[arg(long, value_name = "NAME", default_value = "network-operator")]
    lease_name: String,
    /// Namespace of the Lease; without it the pod's, or the kubeconfig's.
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE")]
    lease_namespace: Option<String>,
    /// A leader that has not renewed its Lease for so many seconds may be replaced.
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0)]
    lease_duration: f32,
    /// A leader that could not renew its Lease for so many seconds stops writing.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    lease_renew_deadline: f32,
    /// Seconds between two tries to get or renew the Lease.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    lease_retry: f32,
    /// How many Networks are reconciled at once.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// Hold an edit of the rules that would delete more than this many percent of all children (and more than ten).
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u8).range(0..=100))]
    max_prune: u8,
    /// Deadline of every single call to the API server, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 4.0)]
    call_timeout: f32,
    /// Answer `/livez` and `/readyz` over HTTP at this address, such as `0.0.0.0:8080`; without it, nowhere.
    #[arg(long, value_name = "IP:PORT", env = "NETWORK_OPERATOR_HEALTH_ADDRESS")]
    health_address: Option<std::net::SocketAddr>,
    /// Log level (`error`, `warn`, `info`, `debug`, `trace`) or filter.
    #[arg(long, value_name = "FILTER", default_value = "info", env = "RUST_LOG")]
    log: String,
    /// How log lines look.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = log::Format::Auto)]
    log_format: log::Format,
}

/// Runs the operator until SIGTERM or SIGINT.
pub fn main(args: &Args) -> ExitCode {
    if let Err(message) = log::init(args.log_format, &args.log) {
        return super::fail(&message);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return super::fail(&format!("cannot start the runtime: {error}")),
    };
    match runtime.block_on(run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => super::fail(&message),
    }
}

async fn run(args: &Args) -> Result<(), String> {
    let deadline = seconds("--call-timeout", args.call_timeout)?;
    let config = kube_config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let server = config.cluster_url.to_string();
    let leadership = Arc::new(if args.leader_elect { Leadership::awaited() } else { Leadership::unlimited() });
    let election = args.leader_elect.then(|| election(args, &config.default_namespace, deadline)).transpose()?;
    let cluster = Cluster::connect(config, deadline, leadership.clone())
        .map_err(|error| format!("cannot set up the connection to {server}: {error}"))?;
    let options = Options {
        namespaces: args.namespace.clone(),
        concurrency: usize::from(args.concurrency),
        max_prune: args.max_prune,
        grace: Duration::from_secs(5),
    };
    info!("network-operator {} at {server}", env!("CARGO_PKG_VERSION"));
    let stop = stop_signal()?;
    let controller = Arc::new(Controller::new(cluster.clone(), options));
    if let Some(address) = args.health_address {
        tokio::spawn(serve::serve(serve::bind(address).await?, controller.clone(), leadership.clone()));
    }
    let (done, mut finished) = watch::channel(false);
    let run = async {
        controller.run(RuleFiles::new(args.rules.clone()), &leadership, stop.clone()).await;
        done.send_replace(true);
    };
    let elect = async {
        if let Some(settings) = election {
            let idle = async {
                let _ = finished.wait_for(|finished| *finished).await;
            };
            lease::elect(cluster, settings, &leadership, stop.clone(), idle).await;
        }
    };
    tokio::join!(run, elect);
    info!("stopped");
    Ok(())
}

fn seconds(flag: &str, value: f32) -> Result<Duration, String> {
    let duration = Duration::try_from_secs_f32(value).ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| format!("`{flag} {value}` is not a number of seconds above zero"))
}

fn election(args: &Args, default_namespace: &str, call_deadline: Duration) -> Result<Settings, String> {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "localhost".to_owned());
    // Two processes of one host must not take each other's Lease for their own.
    let unique = RandomState::new().hash_one(std::process::id());
    let settings = Settings {
        namespace: args.lease_namespace.clone().unwrap_or_else(|| default_namespace.to_owned()),
        name: args.lease_name.clone(),
        identity: format!("{host}_{unique:016x}"),
        duration: seconds("--lease-duration", args.lease_duration)?,
        renew_deadline: seconds("--lease-renew-deadline", args.lease_renew_deadline)?,
        retry: seconds("--lease-retry", args.lease_retry)?,
    };
    settings.check(call_deadline)?;
    Ok(settings)
}

/// The connection settings: `--kubeconfig`, else what kubectl would use, else the pod's service account.
pub async fn kube_config(file: Option<&Path>, context: Option<&str>) -> Result<Config, String> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    if let Some(file) = file {
        let kubeconfig = Kubeconfig::read_from(file)
            .map_err(|error| format!("cannot read kubeconfig {}: {error}", file.display()))?;
        return Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|error| format!("cannot use kubeconfig {}: {error}", file.display()));
    }
    if context.is_some() {
        return Config::from_kubeconfig(&options).await.map_err(|error| format!("cannot use the kubeconfig: {error}"));
    }
    Config::infer().await.map_err(|error| format!("no way to reach a cluster: {error}; give `--kubeconfig FILE`"))
}

/// Turns true at SIGTERM or SIGINT.
fn stop_signal() -> Result<watch::Receiver<bool>, String> {
    let (sender, receiver) = watch::channel(false);
    let mut terminate =
        signal(SignalKind::terminate()).map_err(|error| format!("cannot listen for SIGTERM: {error}"))?;
    let mut interrupt =
        signal(SignalKind::interrupt()).map_err(|error| format!("cannot listen for SIGINT: {error}"))?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        sender.send_replace(true);
        // Kept alive so that late receivers see the value rather than a closed channel.
        std::future::pending::<()>().await;
    });
    Ok(receiver)
}
