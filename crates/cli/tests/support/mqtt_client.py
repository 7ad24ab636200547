"""Independent MQTT clients for the tests (pip install paho-mqtt).

collect PORT FILTER FILE ID [properties]   appends each payload to FILE as a line, until killed;
                                           with `properties`, topic and user properties in front, as JSON
publish PORT TOPIC FILE [PAUSE]            publishes each line of FILE, and ends when all are confirmed;
                                           `{n}` in TOPIC is the number of the line modulo 3
"""

import json
import sys
import time

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties


def connected(client_id, port, keeps):
    client = mqtt.Client(
        mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, protocol=mqtt.MQTTv5
    )
    client.reconnect_delay_set(min_delay=0.05, max_delay=0.2)
    client.max_inflight_messages_set(500)
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = 3600 if keeps else 0
    properties.ReceiveMaximum = 60000
    return client, lambda: client.connect(
        "127.0.0.1", port, keepalive=20, clean_start=not keeps, properties=properties
    )


def collect(port, topics, path, client_id, with_properties):
    client, connect = connected(client_id, port, True)
    out = open(path, "ab", buffering=0)

    def on_connect(client, *_):
        client.subscribe(topics, qos=1)

    def on_subscribe(client, *_):
        if client.on_subscribe:
            client.on_subscribe = None
            print("ready", flush=True)

    def on_message(_client, _data, message):
        if with_properties:
            found = dict(getattr(message.properties, "UserProperty", []))
            found["topic"] = message.topic
            out.write(json.dumps(found, sort_keys=True).encode() + b"\t")
        out.write(message.payload + b"\n")

    client.on_connect = on_connect
    client.on_subscribe = on_subscribe
    client.on_message = on_message
    connect()
    client.loop_forever(retry_first_connection=True)


def is_published(one):
    try:
        return one.is_published()
    except RuntimeError:  # it was queued while there was no connection, and will be sent
        return False


def publish(port, topic, path, pause):
    client, connect = connected("", port, False)
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = ("site", "north")
    connect()
    client.loop_start()
    sent = []
    for number, line in enumerate(open(path, "rb")):
        to = topic.replace("{n}", str(number % 3))
        sent.append(client.publish(to, line.rstrip(b"\n"), qos=1, properties=properties))
        if pause:
            time.sleep(pause)
    for one in sent:
        while not is_published(one):
            time.sleep(0.002)
    client.disconnect()
    client.loop_stop()


command, port = sys.argv[1], int(sys.argv[2])
if command == "collect":
    collect(port, *sys.argv[3:6], len(sys.argv) > 6)
else:
    publish(port, sys.argv[3], sys.argv[4], float(sys.argv[5]) if len(sys.argv) > 5 else 0)
