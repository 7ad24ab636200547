// A worker in a browser: WebAssembly decides, MQTT 5 over WebSocket carries.

import mqtt from './vendor/mqtt.esm.js';

const OUTCOMES = ['asked for by nobody', 'skipped', 'sent', 'sent to make sure'];

/** A worker at a broker. */
export class Worker {
  /** Loads the module and connects. `url` is like ws://localhost:9001. */
  static async start({ url, wasm = 'lately_edge_browser.wasm', property = 'noise', id, log = () => {} }) {
    const { instance } = await WebAssembly.instantiateStreaming(fetch(wasm));
    const worker = new Worker();
    worker.core = instance.exports;
    worker.counts = OUTCOMES.map(() => 0);
    worker.log = log;
    const words = id ? [parseInt(id.slice(0, 8), 16), parseInt(id.slice(8), 16)] : crypto.getRandomValues(new Uint32Array(2));
    const [life] = crypto.getRandomValues(new Uint32Array(1));
    worker.id = id ?? Array.from(words, (word) => word.toString(16).padStart(8, '0')).join('');
    worker.input(new TextEncoder().encode(property));
    if (worker.core.lately_start(words[0], words[1], life) !== 0) throw new Error(`${property}: no property`);
    worker.client = await mqtt.connectAsync(url, {
      protocolVersion: 5,
      clientId: `lately-worker-${worker.id}-${life.toString(16).padStart(8, '0')}`,
      will: { topic: 'lately/1/gone/worker', payload: worker.farewell(), qos: 1 },
    });
    worker.client.on('message', (topic, payload) => {
      worker.input(payload);
      worker.core.lately_handle(Date.now());
      worker.flush();
    });
    await worker.client.subscribeAsync(`lately/1/worker/${worker.id}/+`, { qos: 1 });
    worker.timer = setInterval(() => {
      worker.core.lately_tick(Date.now());
      worker.flush();
    }, 1000);
    return worker;
  }

  /** A `leave` message: what the broker says when the connection is lost. */
  farewell() {
    const bytes = new Uint8Array(11);
    bytes.set([0xed, 1, 13]);
    const number = BigInt(`0x${this.id}`);
    new DataView(bytes.buffer).setBigUint64(3, number, true);
    return bytes;
  }

  input(bytes) {
    const at = this.core.lately_room(bytes.length);
    new Uint8Array(this.core.memory.buffer, at, bytes.length).set(bytes);
  }

  output(length) {
    return new Uint8Array(this.core.memory.buffer, this.core.lately_output(), length).slice();
  }

  /** Sends what waits. */
  flush() {
    for (let length = this.core.lately_next(); length > 0; length = this.core.lately_next()) {
      const message = this.output(length);
      const end = message.indexOf(0);
      const topic = new TextDecoder().decode(message.subarray(0, end));
      this.client.publish(topic, message.slice(end + 1), { qos: 1 });
    }
  }

  /** It is there; subscribes to the cell and its square of 10 km before the host can hear of it. */
  async go(latitude, longitude) {
    const length = this.core.lately_go(Date.now(), latitude, longitude);
    if (length < 0) throw new Error('no such place');
    const cell = new TextDecoder().decode(this.output(length));
    const square = cell.slice(0, -4) + cell.at(-4) + cell.at(-2);
    for (const [kind, name] of Object.entries({ cell, square })) {
      const before = this[kind];
      if (name === before) continue;
      await this.client.subscribeAsync(`lately/1/${kind}/${name}/+`, { qos: 1 });
      if (before) await this.client.unsubscribeAsync(`lately/1/${kind}/${before}/+`);
      this[kind] = name;
    }
    this.flush();
  }

  /** Waits until the host of the cell has answered, or has had its time. */
  async settle(millis = 20_000) {
    const end = Date.now() + millis;
    while (this.core.lately_is_assigned() === 0 && Date.now() < end) {
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  /** A reading: decides, and sends it if it is wanted. */
  sense(latitude, longitude, value) {
    const outcome = this.core.lately_sense(Date.now(), latitude, longitude, value);
    if (outcome < 0) throw new Error('no such place');
    this.counts[outcome] += 1;
    this.flush();
    this.log(`${value} at ${latitude.toFixed(4)}, ${longitude.toFixed(4)}: ${OUTCOMES[outcome]}`);
    return outcome;
  }

  /** What became of what was sent. */
  told() {
    const [kept, redundant, refused, unanswered] = [0, 1, 2, 3].map((what) => this.core.lately_told(what));
    return { kept, redundant, refused, unanswered };
  }

  async stop() {
    clearInterval(this.timer);
    this.core.lately_leave();
    this.flush();
    await this.client.endAsync();
  }
}
