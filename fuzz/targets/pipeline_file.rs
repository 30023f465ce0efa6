//! Bytes as a pipeline file: refused with a place, or accepted and described; never a panic, never a secret.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockgate::fuzzing::{SECRET, pipeline_file};

fuzz_target!(|content: &[u8]| {
    match pipeline_file(content) {
        Ok(description) => assert!(!description.is_empty()),
        Err(message) => {
            let place = message.strip_prefix("pipeline.yaml:").expect("an error names the file");
            let mut numbers = place.splitn(3, ':').map(|number| number.parse::<usize>());
            let (line, column) = (numbers.next(), numbers.next());
            let line = line.and_then(Result::ok).expect("an error names the line");
            let column = column.and_then(Result::ok).expect("an error names the column");
            // YAML ends lines with `\r`, too.
            let ends = content.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
            assert!((1..=ends + 1).contains(&line), "there is no such line: {message}");
            assert!(column >= 1, "{message}");
            assert!(!message.chars().any(char::is_control), "not one line: {message:?}");
            let has_secret = content.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
            assert!(has_secret || !message.contains(SECRET), "shows a secret: {message}");
        }
    }
});
