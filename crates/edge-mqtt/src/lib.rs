//! The roles of crowdsensing at the edge over an MQTT 5 broker.
//!
//! [`lately_edge`] has the roles, as state machines without I/O; this crate adds their connections, clocks and files.
//!
//! | module | what |
//! |---|---|
//! | [`broker`] | address of the broker, TLS, user and password; or a broker in memory |
//! | [`topic`] | topics, and which role may publish what |
//! | [`clock`] | the system's time, or a faster one for replays |
//! | [`coordinator`], [`process`], [`worker`], [`requester`] | a role that runs |
//! | [`store`] | state on disk |
//! | [`traffic`] | counts of a connection |
//! | [`mosquitto`] | starts an installed mosquitto, for demonstrations and tests |
//! | [`run`] | how runs end |
//!
//! All publications are QoS 1, and none is retained but those to a whole square. A lost connection is retried after 0.1 s
//! to 30 s, with exponential backoff and jitter. All queues are bounded. One single-threaded tokio runtime serves hundreds of
//! connections. Whoever runs all roles in one process needs no network: [`broker::Broker::in_memory`]. How to set up a
//! broker: `docs/edge-mqtt.md`.

pub mod broker;
pub mod clock;
pub mod coordinator;
mod guard;
mod link;
pub mod mosquitto;
pub mod observer;
pub mod process;
pub mod requester;
pub mod run;
pub mod store;
pub mod topic;
pub mod traffic;
pub mod worker;

pub use link::Status;
