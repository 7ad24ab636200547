#!/usr/bin/env python3
"""Records what a server replies to the commands in a file, and writes the replies behind them.

    LD_LIBRARY_PATH=FOLDER redis-server --port 7999 --save "" --loadmodule redisbloom.so
    ./record.py 127.0.0.1:7999 redisbloom.txt

Lines that begin with `-- ` begin a topic: a server that knows nothing, and a new connection. Lines that are indented
are replies, which are written again; all other lines are commands. Words are separated by one space; `""` is an empty word;
`\\r`, `\\n`, `\\\\` and `\\x00` stand for bytes. Replies are marked by the version of the protocol, or `=` where both are alike.

The server forgets everything that it knows: use one of your own. It is asked which modules it has, so name that without its folder.
"""

import socket
import sys


def unescape(word):
    return b"" if word == '""' else word.encode("latin-1").decode("unicode_escape").encode("latin-1")


def escape(data):
    known = {0x0D: "\\r", 0x0A: "\\n", 0x5C: "\\\\"}
    shown = lambda byte: chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"
    return "".join(known.get(byte) or shown(byte) for byte in data)


class Client:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        parts = [b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.socket.sendall(b"".join(parts))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line:
            raise SystemExit("the server has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$" and rest != b"-1":
            return line + self.file.read(int(rest) + 2)
        if kind in b"*%~>" and rest != b"-1":
            count = int(rest) * (2 if kind == b"%" else 1)
            return line + b"".join(self.reply() for _ in range(count))
        return line


def main():
    address, path = sys.argv[1:]
    with open(path, encoding="ascii") as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("  ")]
    replies = {}
    for protocol in (2, 3):
        client = None
        for number, line in enumerate(lines):
            if line.startswith("-- "):
                client = Client(address)
                client.ask(b"FLUSHALL")
                if protocol == 3:
                    client.ask(b"HELLO", b"3")
            elif line and not line.startswith("#"):
                reply = client.ask(*map(unescape, line.split(" ")))
                replies[number, protocol] = escape(reply)
    with open(path, "w", encoding="ascii") as file:
        for number, line in enumerate(lines):
            print(line, file=file)
            two, three = replies.get((number, 2)), replies.get((number, 3))
            if two is not None and two == three:
                print("  =", two, file=file)
            elif two is not None:
                print("  2", two, file=file)
                print("  3", three, file=file)


if __name__ == "__main__":
    main()
