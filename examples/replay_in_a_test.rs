//! A circuit of your own, run in a test over steps that were recorded in production. Needs `lockgate-core`,
//! `lockgate-file-adapter` and `insta`.
#![allow(clippy::unwrap_used, reason = "this is a test")]

use std::collections::BTreeMap;
use std::path::Path;

use lockgate_core::{BoxError, Circuit, Step, StepOutput};
use lockgate_file_adapter::tape::Tape;

/// Counts the orders of each customer.
#[derive(Default)]
struct Customers(BTreeMap<String, u64>);

impl Circuit for Customers {
    fn step(&mut self, step: &Step, _output: &mut StepOutput) -> Result<(), BoxError> {
        for record in
            step.parts.iter().flat_map(|part| &part.batches).flat_map(|batch| batch.iter())
        {
            let order: serde_json::Value =
                serde_json::from_slice(record.value.unwrap_or_default())?;
            *self.0.entry(order["customer"].to_string()).or_default() += 1;
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<Vec<u8>, BoxError> {
        Ok(serde_json::to_vec(&self.0)?)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.0 = serde_json::from_slice(state)?;
        Ok(())
    }
}

#[test]
fn orders_are_counted_by_customer() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data/orders.parquet");
    let mut circuit = Customers::default();
    for step in Tape::find(&recording, None).unwrap().steps() {
        circuit.step(&step.unwrap(), &mut StepOutput::new(&[])).unwrap();
    }
    insta::assert_debug_snapshot!(circuit.0, @r#"
    {
        "\"ada\"": 119,
        "\"alan\"": 132,
        "\"barbara\"": 133,
        "\"edsger\"": 119,
        "\"frances\"": 125,
        "\"grace\"": 121,
        "\"john\"": 126,
        "\"leslie\"": 125,
    }
    "#);
}
