#!/usr/bin/env python3
"""Draws docs/terminal.svg, the picture in README: runs the program and shows what it really printed.

    cargo build --release && docs/terminal.py target/release/lately
"""
import html
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMANDS = [
    "lately dedup examples/rfid.csv --key epc --time timestamp --within 5s | head -4",
    "lately plan --within 10s --expect 1M",
]
CHAR, LINE, SIZE, EDGE, BAR = 7.83, 18, 13, 16, 34


def run(command, program):
    """What a terminal would show: both streams, standard output first."""
    folder = os.path.dirname(os.path.abspath(program))
    path = folder + os.pathsep + os.environ["PATH"]
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return (done.stdout + done.stderr).splitlines()


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "target/release/lately")
    lines = []
    for command in COMMANDS:
        if lines:
            lines.append(("", ""))
        lines.append(("prompt", command))
        lines += [("out", line) for line in run(command, program)]
    width = 2 * EDGE + CHAR * max(len(text) + 2 * (kind == "prompt") for kind, text in lines)
    height = BAR + EDGE + LINE * len(lines)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" '
        f'font-size="{SIZE}">',
        "<title>A terminal: lately dedup and lately plan</title>",
        # Its own background, so that it can be read on a light page and on a dark one.
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8" '
        'fill="#1b2028" stroke="#6b7380"/>',
    ]
    for at, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"]):
        out.append(f'<circle cx="{18 + 18 * at}" cy="17" r="5.5" fill="{colour}"/>')
    for at, (kind, text) in enumerate(lines):
        y = BAR + LINE * at + SIZE
        shown = html.escape(text, quote=False)
        # Set by the character, whatever monospaced font there is.
        length = f'textLength="{CHAR * len(text):.1f}" lengthAdjust="spacingAndGlyphs"'
        if kind == "prompt":
            out.append(f'<text x="{EDGE}" y="{y}" fill="#7ee787">$</text>')
            out.append(
                f'<text x="{EDGE + 2 * CHAR:.1f}" y="{y}" fill="#ffffff" font-weight="bold" '
                f'xml:space="preserve" {length}>{shown}</text>'
            )
        elif text:
            out.append(
                f'<text x="{EDGE}" y="{y}" fill="#c9d1d9" xml:space="preserve" {length}>{shown}</text>'
            )
    out.append("</svg>\n")
    with open(os.path.join(ROOT, "docs/terminal.svg"), "w", encoding="utf-8") as file:
        file.write("\n".join(out))


main()
