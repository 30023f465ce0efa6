//! A reader over data that it cannot read must say so before it closes.

use lockgate_core::{FaultTolerance, InputEndpoint, InputReaderCommand, QueueLimits};

use crate::desk::{Demands, Said};
use crate::life::{Life, Patience, Terms, Waited};
use crate::report::{Fault, Line, Trace};
use crate::rule::Rule;
use crate::schedule::Ask;

/// Enough for a first look at the data.
const LIMITS: QueueLimits = QueueLimits { max_queued_records: 100, max_queued_bytes: 1 << 20 };
const ASK: Ask = Ask { max_batch: 10, checkpoint_requested: false };

/// Reads until the reader reports a fatal error.
pub(crate) fn read_until_failure(
    endpoint: Box<dyn InputEndpoint>,
    level: FaultTolerance,
    patience: Patience,
) -> Result<(), (Fault, Trace)> {
    let mut trace = Trace::default();
    let demands = Demands { wants_failure: true, is_endless: false };
    let terms = Terms { level, limits: LIMITS, patience, demands };
    begin(&mut trace, "open the endpoint over failing data");
    let life = match Life::open(endpoint, terms, None, 0) {
        Ok(life) => life,
        Err(error) => {
            let expected = "the reader opens, and fails when it reads";
            let came = format!("the error \"{error}\" on opening");
            return Err((Fault::new(Rule::ReportsErrorBeforeClosing, expected, came), trace));
        }
    };
    let result = drive(&life, &mut trace);
    for Said { during, text, .. } in life.crash() {
        trace.lines[during].said.push(text);
    }
    result.map_err(|fault| (fault, trace))
}

fn begin(trace: &mut Trace, done: &str) {
    trace.lines.push(Line { done: done.into(), said: Vec::new() });
}

fn drive(life: &Life, trace: &mut Trace) -> Result<(), Fault> {
    begin(trace, "Extend");
    life.begin(1);
    life.send(InputReaderCommand::Extend)?;
    begin(trace, "Queue whenever something is buffered, until a fatal error");
    life.begin(2);
    loop {
        let waited = life.wait(|desk| {
            desk.fatal.is_some() || desk.protocol.held().records > 0 || desk.protocol.ended()
        })?;
        if life.has_failed() {
            break;
        }
        if waited != Waited::Came || life.has_ended() && life.held().records == 0 {
            let came = if waited == Waited::TooLong {
                life.in_vain("nothing")
            } else {
                "the end of input".into()
            };
            return Err(Fault::new(Rule::ReportsErrorBeforeClosing, "a fatal error", came));
        }
        life.send_queue(ASK)?;
        life.wait_for_answer()?;
        if life.take_answer().is_none() && !life.has_failed() {
            let came = life.in_vain("neither");
            return Err(Fault::new(
                Rule::AnswersQueue,
                "the answer to Queue, or a fatal error",
                came,
            ));
        }
    }
    begin(trace, "Disconnect after the fatal error");
    life.begin(3);
    life.disconnect()
}
