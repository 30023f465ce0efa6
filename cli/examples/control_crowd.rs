//! Two hundred clients that mean no good ask the control server of a running pipeline for so many seconds, to measure
//! what that costs the pipeline.
//!
//! `cargo run --release -p lockgate --example control_crowd -- HOST:PORT [SECONDS] [CLIENTS]`

#[path = "../tests/end_to_end/crowd.rs"]
mod crowd;

use std::error::Error;
use std::time::Duration;

use crowd::Crowd;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("the address is missing: HOST:PORT")?.parse()?;
    let seconds = arguments.next().map_or(Ok(10), |seconds| seconds.parse())?;
    let clients = arguments.next().map_or(Ok(200), |clients| clients.parse())?;
    let crowd = Crowd::of(clients, address);
    std::thread::sleep(Duration::from_secs(seconds));
    println!("{} answers for {clients} clients in {seconds} s", crowd.end());
    Ok(())
}
