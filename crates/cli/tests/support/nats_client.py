"""Independent NATS clients for the tests (pip install nats-py).

stream PORT NAME SUBJECT..         makes a stream on disk for these subjects
queue PORT NAME SUBJECT..          makes one that keeps messages until they are acknowledged
consumer PORT NAME CONSUMER        makes a consumer whose messages are acknowledged one by one
publish PORT SUBJECT FILE [PAUSE]  publishes each line of FILE, with an id, and ends when all are confirmed, whatever
                                   happens to the server meanwhile; `{n}` in SUBJECT is the number of the line modulo 3
fetch PORT NAME COUNT FILE [headers]
                                   waits until the stream has so many messages, and writes all that it has to FILE, a line
                                   each; with `headers`, subject and headers in front, as JSON
forget PORT NAME CONSUMER          takes a consumer away
policy PORT NAME CONSUMER          prints how messages of a consumer are acknowledged
unacknowledged PORT NAME CONSUMER  prints how many messages a consumer has not acknowledged, delivered or not
"""

import asyncio
import json
import sys
import time

import nats
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy, StreamConfig

# How long a server that is killed, or a machine that is busy, is waited for, and how long a single answer of it.
PATIENCE = 120
ANSWER = 5


async def quiet(_):
    pass


async def connected(port):
    return await nats.connect(
        f"nats://127.0.0.1:{port}",
        error_cb=quiet,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.1,
        connect_timeout=PATIENCE,
    )


async def patiently(ask):
    """Asks until there is an answer; a request that a killed server had is lost."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return await ask()
        except Exception:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)


async def stream(port, name, *subjects, retention=None):
    client = await connected(port)
    config = StreamConfig(name=name, subjects=list(subjects), retention=retention)
    await patiently(lambda: client.jetstream(timeout=ANSWER).add_stream(config))
    await client.close()


async def queue(port, name, *subjects):
    await stream(port, name, *subjects, retention=RetentionPolicy.WORK_QUEUE)


async def consumer(port, name, consumer):
    client = await connected(port)
    config = ConsumerConfig(durable_name=consumer, ack_policy=AckPolicy.EXPLICIT)
    await patiently(lambda: client.jetstream(timeout=ANSWER).add_consumer(name, config))
    await client.close()


async def publish(port, subject, path, pause="0"):
    client = await connected(port)
    context = client.jetstream(timeout=2)

    async def until_confirmed(number, line):
        headers = {"site": "north", "Nats-Msg-Id": f"{path}-{number}"}
        while True:
            try:
                return await context.publish(
                    subject.replace("{n}", str(number % 3)), line, headers=headers
                )
            except Exception:
                await asyncio.sleep(0.05)

    lines = [line.rstrip(b"\n") for line in open(path, "rb")]
    together = 1 if float(pause) else 200
    for first in range(0, len(lines), together):
        some = enumerate(lines[first : first + together], first)
        await asyncio.gather(*(until_confirmed(number, line) for number, line in some))
        await asyncio.sleep(float(pause))
    await client.close()


async def fetch(port, name, count, path, headers=None):
    client = await connected(port)
    context = client.jetstream(timeout=ANSWER)
    until = time.monotonic() + PATIENCE
    while True:
        state = (await patiently(lambda: context.stream_info(name))).state
        if state.messages >= int(count) or time.monotonic() > until:
            break
        await asyncio.sleep(0.05)
    with open(path, "wb") as out:
        if state.messages:
            config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL)
            messages = await patiently(
                lambda: context.subscribe("", stream=name, ordered_consumer=True, config=config)
            )
            for _ in range(state.messages):
                message = await messages.next_msg(timeout=PATIENCE)
                if headers:
                    found = {
                        key: value
                        for key, value in (message.headers or {}).items()
                        if not key.startswith("Nats-")
                    }
                    found["subject"] = message.subject
                    out.write(json.dumps(found, sort_keys=True).encode() + b"\t")
                out.write(message.data + b"\n")
    await client.close()


async def forget(port, name, consumer):
    client = await connected(port)
    await client.jetstream(timeout=ANSWER).delete_consumer(name, consumer)
    await client.close()


async def policy(port, name, consumer):
    client = await connected(port)
    context = client.jetstream(timeout=ANSWER)
    info = await patiently(lambda: context.consumer_info(name, consumer))
    print(getattr(info.config.ack_policy, "value", info.config.ack_policy))
    await client.close()


async def unacknowledged(port, name, consumer):
    client = await connected(port)
    context = client.jetstream(timeout=ANSWER)
    info = await patiently(lambda: context.consumer_info(name, consumer))
    print(info.num_pending + info.num_ack_pending)
    await client.close()


commands = [stream, queue, consumer, publish, fetch, forget, policy, unacknowledged]
asyncio.run({one.__name__: one for one in commands}[sys.argv[1]](*sys.argv[2:]))
