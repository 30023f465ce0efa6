//! The page of a running pipeline in a real browser: Chromium, driven by chromedriver.
//!
//! Pictures of it go to `tmp/browser` in the target folder.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

#[path = "../end_to_end/site.rs"]
#[allow(dead_code, reason = "not all that other tests need is needed here")]
mod site;

mod chromium;
mod ending;
mod http;
mod looking;
mod steering;
mod trouble;
mod watched;
mod wearing;
