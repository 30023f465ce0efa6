"""Reads a topic with Pathway, counts its records, and drops them."""

import os
import sys
from time import monotonic

os.environ.setdefault("PATHWAY_THREADS", str(os.cpu_count()))
import pathway as pw

servers, topic, records = sys.argv[1], sys.argv[2], int(sys.argv[3])
settings = {
    "bootstrap.servers": servers,
    "group.id": f"peer-pathway-{os.getpid()}",
    "auto.offset.reset": "earliest",
    "fetch.queue.backoff.ms": "2",
    "fetch.wait.max.ms": "50",
}
begun = monotonic()


def look(key, row, time, is_addition):
    del key, time
    if is_addition and row["seen"] >= records:
        print(monotonic() - begun, flush=True)
        os._exit(0)


table = pw.io.kafka.read(settings, topic=topic, format="raw", autocommit_duration_ms=500)
pw.io.subscribe(table.reduce(seen=pw.reducers.count()), on_change=look)
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
sys.exit("the topic ended early")
