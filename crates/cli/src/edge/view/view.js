// Draws what /state.json says, once a second.
'use strict';

const EVERY = 1000;
const byId = (name) => document.getElementById(name);
const map = L.map('map', { preferCanvas: true, attributionControl: false, worldCopyJump: true }).setView([20, 10], 2);
map.createPane('land').style.zIndex = 200;
const squares = L.layerGroup().addTo(map);
const cells = L.layerGroup().addTo(map);
const workers = L.layerGroup().addTo(map);

/** Rings of a TopoJSON polygon: arcs are delta encoded and quantized. */
function rings({ arcs, transform: { scale, translate } }, polygon) {
  const arc = (index) => {
    let [x, y] = [0, 0];
    const points = arcs[index < 0 ? ~index : index].map(([dx, dy]) => {
      x += dx;
      y += dy;
      return [y * scale[1] + translate[1], x * scale[0] + translate[0]];
    });
    return index < 0 ? points.reverse() : points;
  };
  return polygon.map((ring) => ring.flatMap((index, at) => arc(index).slice(at ? 1 : 0)));
}

fetch('land.json').then((answer) => answer.json()).then((land) => {
  const style = { pane: 'land', stroke: true, color: '#9fb0bb', weight: 0.7, fillColor: '#f4f1e8', fillOpacity: 1, interactive: false };
  for (const shape of land.objects.land.geometries) {
    const polygons = shape.type === 'Polygon' ? [shape.arcs] : shape.arcs;
    for (const polygon of polygons) L.polygon(rings(land, polygon), style).addTo(map);
  }
});

/** The corners of an MGRS cell. */
function bounds(name) {
  const [west, south, east, north] = mgrs.inverse(name);
  return [[south, west], [north, east]];
}

/** Green when fresh, grey when no longer valid. */
function colour(share) {
  if (share >= 1) return 'hsl(0 0% 62%)';
  return `hsl(${140 - 110 * share} ${65 + 20 * share}% ${38 + 12 * share}%)`;
}

function ago(millis) {
  const seconds = Math.max(0, Math.round(millis / 1000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

function table(id, rows, head) {
  const row = (tag, texts) => {
    const line = document.createElement('tr');
    for (const text of texts) line.appendChild(document.createElement(tag)).textContent = text;
    return line;
  };
  byId(id).replaceChildren(...(head ? [row('th', head)] : []), ...rows.map((texts) => row('td', texts)));
}

function status(parts) {
  byId('status').replaceChildren(...parts.map(([good, words]) => {
    const line = document.createElement('div');
    line.appendChild(document.createElement('span')).className = `dot ${good ? 'good' : 'bad'}`;
    line.append(words);
    return line;
  }));
}

let before = null;
let fitted = false;

/** Messages a second since the last time. */
function rate(state, name) {
  if (!before || state.at <= before.at) return '';
  const passed = (state.at - before.at) / 1000;
  return `${((state.counts[name] - before.counts[name]) / passed).toFixed(1)} /s`;
}

function draw(state) {
  state.at = performance.now();
  const { now, window: valid } = state;
  squares.clearLayers();
  cells.clearLayers();
  workers.clearLayers();
  let area = null;
  for (const { square, process, kept, redundant } of state.hosts) {
    const corners = bounds(square);
    L.rectangle(corners, { color: '#2f5d8a', weight: 1.5, fill: false, dashArray: '5 4' })
      .bindTooltip(`${square}: host ${process.slice(0, 8)}…, ${kept} kept, ${redundant} redundant`).addTo(squares);
    area = area ? area.extend(corners) : L.latLngBounds(corners);
  }
  let covered = 0;
  for (const [cell, heard, sent, property, value] of state.cells) {
    const share = (now - heard) / valid;
    covered += share < 1 ? 1 : 0;
    const corners = bounds(cell);
    L.rectangle(corners, { stroke: false, fillColor: colour(share), fillOpacity: 0.8 })
      .bindTooltip(`${cell}: ${property} ${value}, ${ago(now - heard)} ago; ${sent} sent`).addTo(cells);
    if (!state.hosts.length) area = area ? area.extend(corners) : L.latLngBounds(corners);
  }
  const places = new Map();
  for (const [cell] of state.workers) places.set(cell, (places.get(cell) ?? 0) + 1);
  for (const [cell, count] of places) {
    L.circleMarker(L.latLngBounds(bounds(cell)).getCenter(), { radius: 3 + Math.sqrt(count), color: '#fff', weight: 1, fillColor: '#1c2733', fillOpacity: 0.85 })
      .bindTooltip(`${cell}: ${count} worker${count === 1 ? '' : 's'}`).addTo(workers);
  }
  if (area && !fitted) {
    fitted = true;
    map.fitBounds(area.pad(0.1));
  }
  const acts = state.coordinator !== null;
  status([
    [state.up, state.up ? 'connected to the broker' : 'no connection to the broker'],
    [acts, acts ? `coordinator ${state.coordinator[0].slice(0, 8)}… acts` : 'no coordinator has been heard of'],
  ]);
  byId('window').textContent = ago(valid);
  table('counts', [
    ['readings sent', state.counts.submissions, rate(state, 'submissions')],
    ['redundant (updates)', state.counts.updates, rate(state, 'updates')],
    ['to requesters', state.counts.results, rate(state, 'results')],
    ['messages', state.counts.messages, rate(state, 'messages')],
    ['cells of 100 m covered', covered, ''],
    ['workers', state.workers.length, ''],
  ]);
  table('hosts', state.hosts.map((host) => [host.square, host.kept, ago(now - host.heard)]), ['square', 'kept', 'heard']);
  table('tasks', state.tasks.map((task) => [task.property, task.area.join(' ') || 'everywhere', ago(task.until - now)]), ['property', 'area', 'ends in']);
  before = state;
  document.body.dataset.drawn = String(state.cells.length);
}

async function step() {
  try {
    const answer = await fetch('state.json');
    if (answer.ok) draw(await answer.json());
  } catch (error) {
    status([[false, `the viewer does not answer: ${error.message}`]]);
  }
  setTimeout(step, EVERY);
}
step();
