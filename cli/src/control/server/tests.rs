//! The server over real connections, beside a real run.

mod greedy;
mod looking;
mod steering;
mod subject;
mod wire;
