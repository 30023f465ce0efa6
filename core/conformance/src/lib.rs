//! Holds an input reader against the rules of the protocol.
