"use strict";
// A plan slot by slot: drawing, load of links, messages, and times of ranks.

const MESSAGES_AT_ONCE = 40;
const NAMES = {data: "data", slot: "its slot", sender: "the sender", receiver: "the receiver"};

const HEADINGS = {ring: "Load of links", graph: "Load of links", fibres: "Load of links", grid: "Circuits of switches", circle: "Circuits of ranks"};

function planSection(part) {
  const plan = part.content;
  const count = plan.slots.length;
  const unit = plan.graph ? "step" : "slot";
  let slot = 0;
  const box = element("section", {class: "plan"});
  if (!count) {
    box.append(element("p", {}, "The plan has no slots: nothing needs to be sent."));
    return box;
  }
  const edges = [0];
  for (const one of plan.slots) edges.push(edges.at(-1) + one.messages);
  const scene = {ring: ringScene, grid: gridScene, graph: graphScene, fibres: fibreScene, circle: circleScene}[plan.view](plan);
  const said = element("p", {"aria-live": "polite", class: "slot"});
  const range = element("input", {
    type: "range", min: 0, max: count - 1, value: 0, "aria-label": `Number of the ${unit}`,
    oninput: () => go(Number(range.value)),
  });
  const button = (step, text, label) => element("button", {
    type: "button", "aria-label": label, onclick: () => go(slot + step),
  }, text);
  const before = button(-1, "◀", `The ${unit} before`);
  const after = button(1, "▶", `The next ${unit}`);
  const loads = element("ol", {class: "loads"});
  const messages = element("div");
  const gantt = ganttSection(plan, edges, () => slot, (chosen) => go(chosen));
  const side = element("div", {}, element("h3", {}, HEADINGS[plan.graph ? "graph" : plan.view]), loads);
  box.append(
    element("h3", {}, plan.graph ? "Steps" : "Slots"),
    element("p", {class: "quiet hint"}, "Left and right keys step while the slider has the focus."),
    element("div", {class: "controls"}, before, range, after),
    said, element("div", {class: "stage"}, scene.drawing, side), scene.key,
    messages, gantt.box);

  function go(to) {
    slot = Math.max(0, Math.min(count - 1, to));
    range.value = slot;
    before.disabled = slot === 0;
    after.disabled = slot === count - 1;
    const told = plan.slots[slot];
    const waits = told.reconfiguration ? `, after ${reading(told.reconfiguration, "s")} of reconfiguration` : "";
    said.textContent = `${unit} ${slot} (the last is ${count - 1}), step ${told.step}: ${told.messages} ${plan.graph ? "messages" : "circuits"}, `
      + `from ${reading(told.start, "s")} to ${reading(told.end, "s")}${waits}`;
    const shown = Array.from({length: told.messages}, (_, at) => edges[slot] + at);
    const load = scene.show(shown);
    drawLoads(loads, load);
    drawMessages(messages, plan, shown);
    gantt.mark();
  }
  go(0);
  return box;
}

const LOADS_SHOWN = 14;

// Shows the most loaded links of a slot in a list, with their names and loads.
function drawLoads(list, load) {
  const most = Math.max(1, ...load.map((one) => one.of || one.load));
  const sorted = [...load].sort((a, b) => b.load - a.load);
  const line = (one) => element("li", {},
    element("span", {}, one.name), element("span", {}, element("b", {style: `width:${100 * one.load / most}%`})),
    element("em", {}, one.of ? `${one.load} of ${one.of}` : String(one.load)));
  const rest = sorted.slice(LOADS_SHOWN);
  const open = Boolean(list.querySelector("details")?.open);
  list.replaceChildren(...sorted.slice(0, LOADS_SHOWN).map(line));
  if (rest.length) {
    list.append(element("li", {class: "rest"}, element("details", {open}, element("summary", {}, `and ${plural(rest.length, "link")} more`),
      element("ol", {class: "loads"}, ...rest.map(line)))));
  }
}

function ends(plan, at) {
  return `${nameOf(plan, plan.messages.source[at])} → ${nameOf(plan, plan.messages.destination[at])}`;
}

// Returns the name of a rank or switch in its graph, or its number.
function nameOf(plan, vertex) {
  return plan.names ? plan.names[vertex] : String(vertex);
}

// Appends ranks as discs, grey if they failed or take no part, and switches as squares.
function appendVertices(parent, plan, at, radius) {
  at.forEach(([x, y], vertex) => {
    const rank = vertex < plan.ranks;
    const disc = vertex < plan.ranks + plan.idle;
    const shape = disc
      ? element("svg:circle", {cx: x, cy: y, r: radius, fill: rank ? "#fff" : "#a8a8a8", stroke: "#222", "stroke-width": 0.8})
      : element("svg:rect", {x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius, fill: "#e4e4e4", stroke: "#6b6b6b", "stroke-width": 0.8});
    shape.append(element("svg:title", {}, `${plan.names ? `${plan.names[vertex]}: ` : ""}${rank ? `rank ${vertex}` : disc ? plan.idle_noun : "switch"}`));
    parent.append(shape);
    if (radius <= 4 || !(rank || plan.names)) return;
    parent.append(plan.names
      ? element("svg:text", {x, y: y - 1.6 * radius, "text-anchor": "middle", "paint-order": "stroke", stroke: "#fff", "stroke-width": 3, style: "font-size:8px"}, plan.names[vertex])
      : element("svg:text", {x, y, "text-anchor": "middle", "dominant-baseline": "central", style: `font-size:${1.05 * radius}px`}, String(vertex)));
  });
}

function waitOf(plan, at) {
  const kind = plan.waits.for[at];
  const brought = plan.waits.brought[at];
  const data = brought < 0 ? "" : `data from ${nameOf(plan, plan.messages.source[brought])}, sent in ${plan.graph ? "step" : "slot"} ${plan.messages.slot[brought]}`;
  if (kind === "data") return data;
  if (kind === "slot") return plan.messages.slot[at] ? `its slot, after those before it${data ? `; ${data}, are there` : ""}` : "its slot: the first circuits to be set up";
  if (kind === null) return "nothing: it starts at once";
  const rank = plan.messages[kind === "sender" ? "source" : "destination"][at];
  return `${plan.names ? plan.names[rank] : `rank ${rank}`}, busy with ${ends(plan, plan.waits.busy[at])} until then`;
}

function chunksOf(plan, at) {
  const first = plan.messages.chunk[at];
  const last = first + plan.messages.count[at] - 1;
  return first === last ? String(first) : `${first} to ${last}`;
}

function drawMessages(box, plan, shown) {
  const head = ["from → to", "action", "chunks", ...(plan.light ? ["light"] : []), "starts", "ends", "waits for"];
  const rows = shown.slice(0, MESSAGES_AT_ONCE).map((at) => element("tr", {}, ...[
    ends(plan, at), ["copy", "reduce", "multicast", "aggregate"][plan.messages.action[at]], chunksOf(plan, at),
    ...(plan.light ? [plan.light.texts[plan.light.places[at]]] : []),
    reading(plan.messages.start[at], "s"), reading(plan.messages.end[at], "s"), waitOf(plan, at),
  ].map((text, column, all) => element("td", {class: column === all.length - 1 ? "text" : null}, text))));
  const rest = shown.length - rows.length;
  box.replaceChildren(element("h3", {}, plan.graph ? "Messages of the step" : "Circuits of the slot"),
    element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Messages"}, element("table", {},
      element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {scope: "col"}, text)))),
      element("tbody", {}, ...rows))),
    rest > 0 ? element("p", {class: "quiet"}, `and ${rest} more`) : "");
}

function colourOf(plan, at) {
  if (!plan.light) return "#0072B2";
  return plan.light.colours[plan.light.of[at]] || "#808080";
}

// Creates the legend of light; of many values, it has the first, some between and the last.
function keyOfLight(plan) {
  const list = element("ul", {class: "key"});
  if (!plan.light) return list;
  const {values, colours, name} = plan.light;
  const step = Math.max(1, Math.ceil(values.length / 12));
  values.forEach((value, at) => {
    if (at % step && at !== values.length - 1) return;
    list.append(element("li", {}, element("i", {style: `background:${colours[at]}`}), `${name} ${value}`));
  });
  return list;
}

function canvas(left, top, width, height, about) {
  return element("svg:svg", {viewBox: `${left} ${top} ${width} ${height}`, role: "img", "aria-label": about});
}

function pointed(node, plan, at) {
  node.addEventListener("pointermove", (event) => hover(event, [
    ["transfer", ends(plan, at)], ["chunks", chunksOf(plan, at)],
    ...(plan.light ? [["light", plan.light.texts[plan.light.places[at]]]] : []),
    ["waits for", waitOf(plan, at)],
  ]));
  node.addEventListener("pointerleave", () => hover(null, null));
  return node;
}

function ranksOnCircle(plan, radius) {
  const nodes = element("svg:g");
  const many = plan.ranks > 72;
  const label = Math.max(1, Math.ceil(plan.ranks / 32));
  for (let rank = 0; rank < plan.ranks; rank++) {
    const [x, y] = onCircle(plan.ranks, rank, radius);
    nodes.append(element("svg:circle", {cx: x, cy: y, r: many ? 1.5 : Math.min(9, 180 / plan.ranks + 3), fill: "#fff", stroke: "#222", "stroke-width": 0.8}));
    if (many && rank % label) continue;
    const [tx, ty] = many ? onCircle(plan.ranks, rank, radius - 12) : [x, y];
    nodes.append(element("svg:text", {x: tx, y: ty, "text-anchor": "middle", "dominant-baseline": "central", style: `font-size:${many ? 8 : Math.max(6, Math.min(10, 150 / plan.ranks + 4))}px`}, String(rank)));
  }
  return nodes;
}

// Rank 0 is at the top, and rank numbers increase clockwise.
function onCircle(ranks, position, radius) {
  const angle = 2 * Math.PI * position / ranks - Math.PI / 2;
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
}

const ARROW = "M0,-3.2L7,0L0,3.2Z";

function arrowAt(x, y, dx, dy, colour) {
  const angle = Math.atan2(dy, dx) * 180 / Math.PI;
  return element("svg:path", {d: ARROW, fill: colour, transform: `translate(${x},${y}) rotate(${angle}) translate(-6,0)`});
}

// Draws lightpaths as arcs: clockwise ones outside the ring, counter-clockwise ones inside.
function ringScene(plan) {
  const ring = 200;
  const band = 88;
  const drawing = canvas(-310, -310, 620, 620, "Lightpaths of the slot on the ring");
  const paths = element("svg:g");
  drawing.append(element("svg:circle", {r: ring, fill: "none", stroke: "#d0d0d0"}), paths, ranksOnCircle(plan, ring));
  const clear = plan.ranks > 72 ? 6 : 16;
  const pitch = Math.min(14, (band - clear) / Math.max(2, plan.ring.channels));
  const show = (shown) => {
    paths.replaceChildren();
    const load = [new Array(plan.ranks).fill(0), new Array(plan.ranks).fill(0)];
    for (const at of shown) {
      const way = plan.ring.way[at];
      const first = plan.ring.first[at];
      const hops = plan.ring.hops[at];
      for (let hop = 0; hop < hops; hop++) load[way][(first + hop) % plan.ranks] += 1;
      const radius = ring + (way ? -1 : 1) * (clear + (plan.ring.lane[at] + 0.5) * pitch);
      const gap = Math.min(0.25 * hops, 0.004 * plan.ranks);
      const from = onCircle(plan.ranks, first + gap, radius);
      const to = onCircle(plan.ranks, first + hops - gap, radius);
      const middle = onCircle(plan.ranks, first + hops / 2, radius);
      const colour = colourOf(plan, at);
      // Two arcs are needed, since a single arc around the whole ring would have no length.
      const arc = `M${from}A${radius},${radius} 0 0 1 ${middle}A${radius},${radius} 0 0 1 ${to}`;
      paths.append(pointed(element("svg:path", {d: arc, fill: "none", stroke: colour, "stroke-width": Math.max(0.7, Math.min(3.2, 0.6 * pitch))}), plan, at));
      if (shown.length <= 200) {
        const [x, y] = way ? from : to;
        const turn = way ? -1 : 1;
        paths.append(arrowAt(x, y, -y * turn, x * turn, colour));
      }
    }
    const list = [];
    load.forEach((own, way) => own.forEach((lit, link) => {
      const [a, b] = [link, (link + 1) % plan.ranks];
      if (lit) list.push({name: way ? `counter-clockwise ${b} → ${a}` : `clockwise ${a} → ${b}`, load: lit, of: plan.ring.capacity});
    }));
    return list;
  };
  return {drawing, show, key: keyOfLight(plan)};
}

// Draws lightpaths along their cables, each at the distance of its channel to the right of its direction.
function fibreScene(plan) {
  const {places, cables, lines, routes, of, names, radius, width, capacity} = plan.fibres;
  const margin = 50;
  const xs = places.map((one) => one[0]);
  const ys = places.map((one) => one[1]);
  const drawing = canvas(-margin, Math.min(...ys) - margin, Math.max(...xs) + 2 * margin, Math.max(...ys) - Math.min(...ys) + 2 * margin, "Lightpaths of the slot on the cables");
  const paths = element("svg:g");
  for (const cable of cables) drawing.append(element("svg:path", {d: `M${cable.join("L")}`, fill: "none", stroke: "#d0d0d0"}));
  drawing.append(paths);
  appendVertices(drawing, plan, places, radius);
  const show = (shown) => {
    paths.replaceChildren();
    const load = new Map();
    const met = new Set();
    for (const at of shown) {
      if (met.has(of[at])) continue;
      met.add(of[at]);
      for (const link of routes[of[at]]) load.set(link, (load.get(link) || 0) + 1);
      const colour = colourOf(plan, at);
      const line = lines[of[at]];
      const d = line.map((part) => `M${part.join("L")}`).join("");
      paths.append(pointed(element("svg:path", {d, fill: "none", stroke: colour, "stroke-width": width}), plan, at));
      if (shown.length > 200) continue;
      const [before, tip] = line.at(-1).slice(-2);
      paths.append(arrowAt(...tip, tip[0] - before[0], tip[1] - before[1], colour));
    }
    return [...load].map(([link, own]) => ({name: names[link], load: own, of: capacity}));
  };
  return {drawing, show, key: keyOfLight(plan)};
}

// Draws circuits as curves between ranks on a circle.
function circleScene(plan) {
  const drawing = canvas(-250, -250, 500, 500, "Circuits of the slot between ranks");
  const paths = element("svg:g");
  drawing.append(element("svg:circle", {r: 215, fill: "none", stroke: "#e8e8e8"}), paths, ranksOnCircle(plan, 215));
  const show = (shown) => {
    paths.replaceChildren();
    for (const at of shown) {
      const from = onCircle(plan.ranks, plan.messages.source[at], 204);
      const to = onCircle(plan.ranks, plan.messages.destination[at], 204);
      const bend = [0.28 * (from[0] + to[0]), 0.28 * (from[1] + to[1])];
      const colour = colourOf(plan, at);
      paths.append(pointed(element("svg:path", {d: `M${from}Q${bend} ${to}`, fill: "none", stroke: colour, "stroke-width": shown.length > 200 ? 0.8 : 1.7}), plan, at));
      if (shown.length <= 200) paths.append(arrowAt(to[0], to[1], to[0] - bend[0], to[1] - bend[1], colour));
    }
    return plan.graph ? loadOfLinks(plan, shown).list : circuitsOfRanks(plan, shown);
  };
  return {drawing, show, key: keyOfLight(plan)};
}

// Draws nodes in rows and columns. Light over a row's switch is above the row if it goes right, and
// below if it goes left. Light over a column's switch is right of the column if it goes down, and
// left of it if it goes up.
function gridScene(plan) {
  const {rows, columns, nodes} = plan.grid;
  const pitch = 64;
  const at = (node) => [(node % columns) * pitch, Math.floor(node / columns) * pitch];
  const drawing = canvas(-58, -40, (columns - 1) * pitch + 96, (rows - 1) * pitch + 78, "Circuits of the slot between nodes of the grid");
  const under = element("svg:g");
  const name = (x, y, anchor, text) => under.append(element("svg:text", {x, y, "text-anchor": anchor, "dominant-baseline": "central", fill: "#6b6b6b", style: "font-size:9px"}, text));
  for (let row = 0; row < rows; row++) {
    under.append(element("svg:line", {x1: -24, y1: row * pitch, x2: (columns - 1) * pitch + 24, y2: row * pitch, stroke: "#dcdcdc"}));
    name(-28, row * pitch, "end", `row ${row}`);
  }
  for (let column = 0; column < columns; column++) {
    under.append(element("svg:line", {x1: column * pitch, y1: -24, x2: column * pitch, y2: (rows - 1) * pitch + 20, stroke: "#dcdcdc"}));
    name(column * pitch, (rows - 1) * pitch + 28, "middle", `column ${column}`);
  }
  const paths = element("svg:g");
  const marks = element("svg:g");
  const rank = new Map(nodes.map((node, number) => [node, number]));
  for (let node = 0; node < rows * columns; node++) {
    const [x, y] = at(node);
    const held = rank.get(node);
    marks.append(element("svg:circle", {cx: x, cy: y, r: 11, fill: held === undefined ? "#f4f4f4" : "#fff", stroke: held === undefined ? "#b0b0b0" : "#222", "stroke-width": 0.8}));
    if (held !== undefined) marks.append(element("svg:text", {x, y, "text-anchor": "middle", "dominant-baseline": "central", style: "font-size:10px"}, String(held)));
  }
  drawing.append(under, paths, marks);
  const show = (shown) => {
    paths.replaceChildren();
    const load = new Map();
    for (const one of shown) {
      const [from, to] = [nodes[plan.messages.source[one]], nodes[plan.messages.destination[one]]];
      const [x1, y1] = at(from);
      const [x2, y2] = at(to);
      const across = y1 === y2;
      const by = across ? `row ${Math.floor(from / columns)}` : `column ${from % columns}`;
      load.set(by, (load.get(by) || 0) + 1);
      const steps = (x2 - x1 + y2 - y1) / pitch;
      // Longer arcs bend more, so that the arcs of a switch nest.
      const bulge = 2 * pitch * (0.16 + 0.26 * (Math.abs(steps) - 1) / Math.max(columns, rows, 2)) * Math.sign(steps);
      const bend = across ? [(x1 + x2) / 2, y1 - bulge] : [x1 + bulge, (y1 + y2) / 2];
      const colour = colourOf(plan, one);
      paths.append(pointed(element("svg:path", {d: `M${x1},${y1}Q${bend} ${x2},${y2}`, fill: "none", stroke: colour, "stroke-width": 1.7}), plan, one));
      const [dx, dy] = [x2 - bend[0], y2 - bend[1]];
      const long = Math.hypot(dx, dy);
      if (shown.length <= 400) paths.append(arrowAt(x2 - 10 * dx / long, y2 - 10 * dy / long, dx, dy, colour));
    }
    return [...load].map(([by, own]) => ({name: `switch of ${by}`, load: own}));
  };
  return {drawing, show, key: keyOfLight(plan)};
}

// Returns the number of the slot's circuits that start at each rank.
function circuitsOfRanks(plan, shown) {
  const load = new Map();
  for (const at of shown) load.set(plan.messages.source[at], (load.get(plan.messages.source[at]) || 0) + 1);
  return [...load].map(([rank, own]) => ({name: `${plan.names ? plan.names[rank] : `rank ${rank}`} sends`, load: own}));
}

// Returns the number of messages on each link.
function loadOfLinks(plan, shown) {
  const load = new Map();
  const met = new Set();
  for (const at of shown) {
    const pair = plan.graph.of[at];
    if (met.has(pair)) continue;
    met.add(pair);
    for (const link of plan.graph.routes[pair]) load.set(link, (load.get(link) || 0) + 1);
  }
  const list = [...load].map(([link, own]) => ({name: plan.graph.names[link], load: own}));
  return {load, list};
}

const SHADES = ["#56B4E9", "#0072B2", "#E69F00", "#D55E00", "#8C2D04"];

// Draws ranks and switches at their positions, and links coloured by number of messages.
function graphScene(plan) {
  const {places, links} = plan.graph;
  const xs = places.map((one) => one[0]);
  const ys = places.map((one) => -one[1]);
  const wide = Math.max(...xs) - Math.min(...xs) || 1;
  const high = Math.max(...ys) - Math.min(...ys) || 1;
  const scale = Math.min(620 / wide, 420 / high, 90);
  const at = places.map((_, vertex) => [(xs[vertex] - Math.min(...xs)) * scale, (ys[vertex] - Math.min(...ys)) * scale]);
  const drawing = canvas(-26, -26, wide * scale + 52, high * scale + 52, "Links of the fabric with the messages of the step");
  const lines = element("svg:g");
  const nodes = element("svg:g");
  const size = Math.max(2.5, Math.min(11, 0.22 * scale, 260 / Math.sqrt(places.length) / 4));
  appendVertices(nodes, plan, at, size);
  drawing.append(lines, nodes);
  const around = new Set(plan.graph.around);
  let most = 1;
  for (let slot = 0, from = 0; slot < plan.slots.length; from += plan.slots[slot].messages, slot++) {
    const shown = Array.from({length: plan.slots[slot].messages}, (_, one) => from + one);
    for (const own of loadOfLinks(plan, shown).load.values()) most = Math.max(most, own);
  }
  const shade = (own) => SHADES[Math.min(SHADES.length - 1, most <= 5 ? own - 1 : Math.floor((own - 1) * SHADES.length / most))];
  const show = (shown) => {
    const {load, list} = loadOfLinks(plan, shown);
    lines.replaceChildren();
    links.forEach(([a, b], link) => {
      const own = load.get(link) || 0;
      const colour = own ? shade(own) : "#dcdcdc";
      const [x1, y1] = at[a];
      const [x2, y2] = at[b];
      const long = Math.hypot(x2 - x1, y2 - y1) || 1;
      // The two directions of a cable are drawn side by side; each is on its right.
      const [ox, oy] = [-(y2 - y1) / long * 2.2, (x2 - x1) / long * 2.2];
      // A link around the edge of a torus is drawn as two stubs.
      const parts = around.has(link)
        ? [[x1, y1, x1 - (x2 - x1) / long * 18, y1 - (y2 - y1) / long * 18], [x2 + (x2 - x1) / long * 18, y2 + (y2 - y1) / long * 18, x2, y2]]
        : [[x1, y1, x2, y2]];
      for (const [ax, ay, bx, by] of parts) {
        const line = element("svg:line", {x1: ax + ox, y1: ay + oy, x2: bx + ox, y2: by + oy, stroke: colour, "stroke-width": own ? 2.6 : 1});
        if (own) {
          line.addEventListener("pointermove", (event) => hover(event, [["link", plan.graph.names[link]], ["messages", own]]));
          line.addEventListener("pointerleave", () => hover(null, null));
        }
        lines.append(line);
        const far = around.has(link) ? 0 : size + 1;
        if (own && shown.length <= 200) lines.append(arrowAt(bx + ox - (bx - ax) / Math.hypot(bx - ax, by - ay) * far, by + oy - (by - ay) / Math.hypot(bx - ax, by - ay) * far, bx - ax, by - ay, colour));
      }
    });
    return list;
  };
  const key = element("ul", {class: "key"}, element("li", {}, "Messages that share a link:"));
  const told = new Map();
  for (let own = 1; own <= most; own++) told.set(shade(own), [told.get(shade(own))?.[0] ?? own, own]);
  for (const [colour, [least, last]] of told) {
    key.append(element("li", {}, element("i", {style: `background:${colour}`}), least === last ? String(least) : `${least} to ${last}`));
  }
  return {drawing, show, key};
}
