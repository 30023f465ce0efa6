"""Reads a topic with Bytewax, counts its records batch by batch, and drops them."""

import os
import sys
import time

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, run_main

servers, topic, records = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = 0
begun = time.monotonic()


def count(batch):
    global seen
    seen += len(batch)
    if seen >= records:
        print(time.monotonic() - begun, flush=True)
        os._exit(0)
    return []


flow = Dataflow("count")
source = KafkaSource([servers], [topic], tail=False, batch_size=10_000)
stream = op.input("in", flow, source)
op.output("out", op.flat_map_batch("count", stream, count), TestingSink([]))
run_main(flow)
sys.exit(f"only {seen} records came")
