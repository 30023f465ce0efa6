//! `lockgate tap`: records that pass by.

use std::io::BufRead;

use super::offer;
use crate::args::Tap;
use crate::client::Client;
use crate::control::report::Report;
use crate::exit::{Code, Failed};

pub(crate) fn tap(args: &Tap) -> Result<(), Failed> {
    let client = Client::new(&args.at)?;
    let kind = kind(&client.get("/api/v1/status")?, &args.name, args.input, args.output)?;
    let path = format!("/api/v1/tap?{kind}={}&n={}", encoded(&args.name), args.records);
    let mut lines = client.lines(&path)?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line).map_err(|error| {
            let message = format!("{} went away: {error}", client.url());
            Failed::new(Code::Unavailable, message)
        })?;
        if read == 0 || !offer(&String::from_utf8_lossy(&line))? {
            return Ok(());
        }
    }
}

/// Whether the name is of an input or an output.
fn kind(report: &Report, name: &str, input: bool, output: bool) -> Result<&'static str, Failed> {
    let is_input = report.inputs.iter().any(|input| input.name == name);
    let is_output = report.outputs.iter().any(|output| output.name == name);
    match (is_input, is_output) {
        (true, true) if !input && !output => {
            let message = format!("{name} is an input and an output; say --input or --output");
            Err(Failed::new(Code::Usage, message))
        }
        // That there is none, the server says, with the nearest name.
        _ if output || (is_output && !input) => Ok("output"),
        _ => Ok("input"),
    }
}

/// `name` as part of a URL.
fn encoded(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).into(),
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::super::status::tests::report;
    use super::*;

    #[test]
    fn a_name_is_looked_up_in_inputs_and_then_outputs() {
        let mut report = report();
        let kind_of = |report: &Report, name, input, output| {
            kind(report, name, input, output).map_err(|failed| failed.message)
        };
        assert_eq!(kind_of(&report, "orders", false, false), Ok("input"));
        assert_eq!(kind_of(&report, "copy", false, false), Ok("output"));
        assert_eq!(kind_of(&report, "nothing", false, false), Ok("input"));
        report.outputs[0].name = "orders".into();
        assert_eq!(kind_of(&report, "orders", false, true), Ok("output"));
        assert_eq!(kind_of(&report, "orders", true, false), Ok("input"));
        let message = kind_of(&report, "orders", false, false).unwrap_err();
        assert!(message.contains("say --input or --output"), "{message}");
    }

    #[test]
    fn a_name_is_fit_for_a_url() {
        assert_eq!(encoded("a-b_c.1"), "a-b_c.1");
        assert_eq!(encoded("a&b é"), "a%26b%20%C3%A9");
    }
}
