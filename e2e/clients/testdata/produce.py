"""Produces what the plan on standard input says, and prints what became of each record.

Python on librdkafka. The plan is a JSON list of sessions, each the life of one producer:
{"config": {...}, "end": "", "commit" or "abort", "records": [{"topic", "key", "value", "headers", "timestamp"}]}
Bytes are base64, and null is null. The answer is a list for each session: of each record its error, "" when there is none.
"""

import base64
import json
import sys

from confluent_kafka import KafkaException, Producer


def plain(text):
    return None if text is None else base64.b64decode(text)


def produce(session):
    producer = Producer(session["config"])
    transactional = session["end"] != ""
    if transactional:
        producer.init_transactions(30)
        producer.begin_transaction()
    errors = ["no answer"] * len(session["records"])
    for i, record in enumerate(session["records"]):

        def delivered(error, _, i=i):
            errors[i] = "" if error is None else error.name()

        options = {"timestamp": record["timestamp"]} if record.get("timestamp") else {}
        try:
            producer.produce(
                record["topic"],
                key=plain(record["key"]),
                value=plain(record["value"]),
                headers=[(header["name"], plain(header["value"])) for header in record["headers"] or []],
                on_delivery=delivered,
                **options,
            )
        except KafkaException as refused:
            errors[i] = refused.args[0].name()
    producer.flush(60)
    if session["end"] == "commit":
        producer.commit_transaction(30)
    elif session["end"] == "abort":
        producer.abort_transaction(30)
    return errors


json.dump([produce(session) for session in json.load(sys.stdin)], sys.stdout)
