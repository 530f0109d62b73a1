//! The scheduler: Ballista's service and our door, on one port.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use arrow_flight::flight_service_server::FlightServiceServer;
use axum::serve::ListenerExt;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::extension::BallistaConfigGrpcEndpoint;
use ballista_core::flight_proxy_service::BallistaFlightProxyService;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::create_scheduler;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use quarrier_cli::StandardOutput;
use tokio::net::TcpListener;
use tonic::service::RoutesBuilder;

use crate::door;
use crate::http::address_of;
use crate::plan::Codec;
use crate::tls::Tls;

/// Maximum size of a message: a plan, a task, or a batch of answers.
pub(crate) const MESSAGE_BYTES_MAX: u32 = 128 << 20;

/// The time between two signs of life of a worker.
pub(crate) const HEARTBEAT_SECONDS: u64 = 2;

/// The time after which a silent worker counts as lost.
const SILENCE_SECONDS: u64 = 10;

/// The time after which jobs fail without any worker, if their clients wait that long.
const WORKERLESS_SECONDS: u64 = 60;

/// The time after which rows that nobody fetched are removed.
const ROWS_SECONDS: u64 = 300;

/// Runs the scheduler until the process is ended.
///
/// # Errors
/// A message for the user.
pub(crate) fn run(listen: &str, tls: Option<&Path>) -> Result<(), String> {
    let address = address_of(listen)?;
    if !address.ip().is_loopback() && tls.is_none() {
        return Err(format!(
            "{listen}: other machines could reach the scheduler there, and it would run anything for \
             anybody; name a folder of certificates with --tls, or listen at 127.0.0.1"
        ));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no threads: {error}"))?;
    let tls = tls.map(Tls::read).transpose()?.map(Arc::new);
    runtime.block_on(serve(address, tls))
}

async fn serve(address: SocketAddr, tls: Option<Arc<Tls>>) -> Result<(), String> {
    let bound = TcpListener::bind(address).await;
    let listener = bound.map_err(|error| format!("{address}: cannot listen there: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let inner = match &tls {
        None => listener,
        Some(tls) => {
            let inner = TcpListener::bind(("127.0.0.1", 0)).await;
            let inner = inner.map_err(|error| format!("127.0.0.1: {error}"))?;
            let to = inner.local_addr().map_err(|error| error.to_string())?;
            tokio::spawn(Arc::clone(tls).accept(listener, to));
            inner
        }
    };
    let config = Arc::new(config(address, tls.as_ref()));
    let message = |error: ballista_core::error::BallistaError| error.to_string();
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(message)?;
    let server: door::Server =
        create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::clone(&config))
            .await
            .map_err(message)?;
    let bytes_max = MESSAGE_BYTES_MAX as usize;
    let mut services = RoutesBuilder::default();
    services.add_service(
        SchedulerGrpcServer::new(server.clone())
            .max_encoding_message_size(bytes_max)
            .max_decoding_message_size(bytes_max),
    );
    let proxy = BallistaFlightProxyService::new(
        bytes_max,
        bytes_max,
        tls.is_some(),
        tls.as_ref().map(|tls| Arc::new(BallistaConfigGrpcEndpoint::new(tls.endpoints()))),
    );
    services.add_service(
        FlightServiceServer::new(proxy)
            .max_decoding_message_size(bytes_max)
            .max_encoding_message_size(bytes_max),
    );
    let routes = services.routes().into_axum_router().merge(door::routes(server));
    let mut out = StandardOutput::new();
    // Whoever waits for this line has gone if it cannot be written.
    let _ = writeln!(out, "ready: scheduler at {address}").and_then(|()| out.flush());
    // Otherwise the kernel holds short answers back for 40 ms.
    let inner = inner.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(inner, routes.into_make_service_with_connect_info::<SocketAddr>())
        .await
        .map_err(|error| format!("{address}: {error}"))
}

fn config(address: SocketAddr, tls: Option<&Arc<Tls>>) -> SchedulerConfig {
    SchedulerConfig {
        external_host: address.ip().to_string(),
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        finished_job_data_clean_up_interval_seconds: ROWS_SECONDS,
        finished_job_state_clean_up_interval_seconds: ROWS_SECONDS,
        enable_embedded_flight_proxy: true,
        grpc_server_max_decoding_message_size: MESSAGE_BYTES_MAX,
        grpc_server_max_encoding_message_size: MESSAGE_BYTES_MAX,
        grpc_client_max_message_size: MESSAGE_BYTES_MAX,
        executor_timeout_seconds: SILENCE_SECONDS,
        expire_dead_executor_interval_seconds: HEARTBEAT_SECONDS,
        no_executors_grace_period_seconds: WORKERLESS_SECONDS,
        override_physical_codec: Some(Arc::new(Codec::default())),
        override_create_grpc_client_endpoint: tls.map(|tls| tls.endpoints()),
        use_tls: tls.is_some(),
        ..SchedulerConfig::default()
    }
}
