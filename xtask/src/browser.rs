//! The browser that tests of the page are shown in: Chromium or Chrome, and chromedriver to drive it.
//!
//! Only whether there is one. The tests start it themselves.

use std::process::{Command, Stdio};

/// The names under which chromedriver finds a browser.
const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// How to get both.
pub(crate) const REMEDY: &str = "install both (Debian: `apt-get install chromium chromium-driver`)";

/// What is missing, if anything is.
pub(crate) fn missing() -> Option<&'static str> {
    lacking(is_installed)
}

fn lacking(is_installed: impl Fn(&str) -> bool) -> Option<&'static str> {
    if !is_installed("chromedriver") {
        return Some("chromedriver is not installed");
    }
    let has_browser = BROWSERS.iter().any(|browser| is_installed(browser));
    (!has_browser).then_some("neither Chromium nor Chrome is installed")
}

/// Whether the program can be started.
fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(installed: &[&str], expected: Option<&str>) {
        assert_eq!(lacking(|program| installed.contains(&program)), expected, "{installed:?}");
    }

    #[test]
    fn a_driver_and_any_of_the_browsers_are_needed() {
        check(&["chromedriver", "chromium"], None);
        check(&["chromedriver", "google-chrome-stable"], None);
        check(&["chromium"], Some("chromedriver is not installed"));
        check(&["chromedriver"], Some("neither Chromium nor Chrome is installed"));
    }

    #[test]
    fn a_program_that_cannot_be_started_is_not_there() {
        assert!(!is_installed("lockgate-no-such-program"));
        assert!(!is_installed("false"));
    }
}
