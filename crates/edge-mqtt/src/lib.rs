//! The roles of crowdsensing at the edge over an MQTT 5 broker.
//!
//! [`lately_edge`] has the roles, as state machines without I/O; here are their connections, clocks and files.
//!
//! | module | what |
//! |---|---|
//! | [`broker`] | where the broker is, TLS, user and password |
//! | [`topic`] | topics, and which role may publish what |
//! | [`clock`] | the system's time, or a faster one for replays |
//! | [`coordinator`], [`host`], [`worker`], [`requester`] | a role that runs |
//! | [`store`] | state on disk |
//! | [`traffic`] | counts of a connection |
//! | [`mosquitto`] | a broker of one's own, for demonstrations and tests |
//! | [`run`] | how runs end |
//!
//! All publications are QoS 1 and not retained. A connection that is lost is made again after 0.1 s to 30 s, by chance
//! and longer each time. All queues are bounded. One tokio runtime of one thread does for
//! hundreds of connections. What runs where, and how to set up a broker: `docs/edge-mqtt.md`.

pub mod broker;
pub mod clock;
pub mod coordinator;
pub mod host;
mod link;
pub mod mosquitto;
pub mod requester;
pub mod run;
pub mod store;
pub mod topic;
pub mod traffic;
pub mod worker;

pub use link::Status;
