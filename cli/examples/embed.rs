//! A circuit of your own between lockgate's inputs and outputs: it counts words, and its counts survive a
//! crash. `cargo run -p lockgate --example embed -- FOLDER WORDS.txt`, kill it, run it again.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_controller::{Controller, Pipeline, Settings};
use lockgate_core::{
    BatchBuilder, BoxError, Circuit, Framing, NewRecord, Partition, Step, StepOutput,
};
use lockgate_file_adapter::{
    FileInput, FileInputConfig, FileOutputConfig, OutputFormat, Overlong, StartAt, file_output,
};

/// How often each word was seen.
#[derive(Default)]
struct WordCount {
    counts: BTreeMap<String, u64>,
}

impl Circuit for WordCount {
    /// Sends the new count of each word of the step, as `word count`.
    fn step(&mut self, step: &Step, output: &mut StepOutput<'_>) -> Result<(), BoxError> {
        let mut changed = BTreeMap::new();
        let batches = step.parts.iter().flat_map(|part| &part.batches);
        for line in batches.flat_map(|batch| batch.iter()).filter_map(|record| record.value) {
            for word in String::from_utf8_lossy(line).split_whitespace() {
                let count = self.counts.entry(word.to_string()).or_insert(0);
                *count += 1;
                changed.insert(word.to_string(), *count);
            }
        }
        let partition = Partition { source: "words".into(), number: None };
        let mut batch = BatchBuilder::new(Arc::new(partition));
        for (word, count) in changed {
            let line = format!("{word} {count}");
            let (offset, value) = (step.number, Some(line.as_bytes()));
            batch.push(NewRecord { offset, value, ..NewRecord::default() })?;
        }
        output.send("counts", batch.build())
    }

    fn checkpoint(&mut self) -> Result<Vec<u8>, BoxError> {
        Ok(serde_json::to_vec(&self.counts)?)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.counts = serde_json::from_slice(state)?;
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let (Some(folder), Some(words)) = (args.next(), args.next()) else {
        return Err("usage: embed FOLDER WORDS.txt".into());
    };
    let folder = std::path::absolute(folder)?;
    let input = FileInput::new(FileInputConfig {
        paths: vec![std::path::absolute(words)?.display().to_string()],
        framing: Framing::Lines,
        max_record_bytes: 1 << 20,
        overlong: Overlong::Truncate,
        follow: false,
        start_at: StartAt::Beginning,
    });
    let (path, format) = (folder.join("counts.txt"), OutputFormat::Lines);
    let output = file_output(FileOutputConfig { path, format, segments: None });
    let pipeline = Pipeline::new("word-count", Settings::new(folder.join("state")))
        .input("words", input)
        .circuit(WordCount::default())
        .output("counts", output);
    let status = Controller::open(pipeline)?.run().await?;
    println!("{} lines in {} steps", status.inputs[0].records, status.steps);
    Ok(())
}
