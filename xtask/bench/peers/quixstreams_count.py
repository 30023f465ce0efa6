"""Reads a topic with Quix Streams, counts its records, and drops them."""

import os
import sys
import time

from quixstreams import Application

servers, topic, records = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = 0
app = Application(
    broker_address=servers,
    consumer_group=f"peer-quix-{os.getpid()}",
    auto_offset_reset="earliest",
    auto_create_topics=False,
    loglevel="ERROR",
    consumer_extra_config={"fetch.queue.backoff.ms": 2, "fetch.wait.max.ms": 50},
)
begun = time.monotonic()


def count(_value):
    global seen
    seen += 1
    if seen >= records:
        print(time.monotonic() - begun, flush=True)
        os._exit(0)


app.dataframe(app.topic(topic, value_deserializer="bytes")).update(count)
app.run()
sys.exit(f"only {seen} records came")
