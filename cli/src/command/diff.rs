//! `lockgate diff`: the first difference between two things of a kind.

mod files;
mod records;
mod sides;
mod states;
mod tapes;

use lockgate_controller::State;

use super::print;
use crate::args::Diff;
use crate::excerpt;
use crate::exit::{Code, Failed};
use crate::subject::Subject;
use sides::Sides;

/// What came out: everything is the same, or the first thing that is not.
enum Compared {
    /// How much was compared, in words.
    Equal(String),
    Different(Sides),
}

pub(crate) fn diff(args: &Diff) -> Result<Code, Failed> {
    let (a, b) = (Subject::of(&args.a)?, Subject::of(&args.b)?);
    let compared = match (&a, &b) {
        (Subject::State(a), Subject::State(b)) => {
            refuse_options(args)?;
            states::compare(&State::inspect(a)?, &State::inspect(b)?)
        }
        (Subject::File(a), Subject::File(b)) => {
            refuse_options(args)?;
            files::compare(a, b)?
        }
        (
            Subject::Recording(_) | Subject::Recordings(_),
            Subject::Recording(_) | Subject::Recordings(_),
        ) => {
            let input = args.input.as_deref();
            tapes::compare(&a.tapes(input)?, &b.tapes(input)?, args.records)?
        }
        _ => {
            let message = format!(
                "{} is {}, and {} is {}: give two things of a kind",
                args.a.display(),
                a.kind(),
                args.b.display(),
                b.kind()
            );
            return Err(Failed::new(Code::Usage, message));
        }
    };
    match compared {
        Compared::Equal(what) => {
            print(&format!("equal: {what}\n"))?;
            Ok(Code::Done)
        }
        Compared::Different(sides) => {
            let names = [&args.a, &args.b].map(|path| path.display().to_string());
            print(&sides.to_text(names, excerpt::width()))?;
            Ok(Code::Different)
        }
    }
}

/// What only recordings have is not ignored silently.
fn refuse_options(args: &Diff) -> Result<(), Failed> {
    if args.input.is_none() && !args.records {
        return Ok(());
    }
    Err(Failed::new(Code::Usage, "--input and --records are for recordings"))
}
