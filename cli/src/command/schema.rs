//! `lockgate schema`.

use super::print;
use crate::exit::Failed;

pub(crate) fn schema() -> Result<(), Failed> {
    print(&format!("{:#}\n", crate::pipeline::schema()))
}
