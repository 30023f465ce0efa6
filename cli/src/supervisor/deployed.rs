//! What is in `docs/deploy` agrees with the program. For tests only.
