"use strict";
// Times as bars: the transfers of ranks, and the parts of a training iteration.

const RANKS_AT_ONCE = 32;
const BARS_AT_ONCE = 6000;
const MOST_LANES = 12; // maximum number of simultaneous transfers of a rank with a line of their own
const WAITS = {
  domain: ["data", "its slot", "the sender", "the receiver", "nothing"],
  range: ["#D55E00", "#0072B2", "#CC79A7", "#E69F00", "#8C6D1F"],
};

// Creates bars in rows over time, which the reader can point at, zoom and save.
async function drawBars(place, values, {rows, kind, colours, chosen, lines, click, rowTitle, height, lanes}) {
  const room = Math.max(220, place.clientWidth || 800);
  const narrow = room < 620;
  const gaps = {
    start: {field: "start", type: "quantitative", title: "Time", axis: {labelExpr: CONTENT.time_labels, labelOverlap: "greedy", labelSeparation: 8, tickCount: narrow ? 4 : 9}, scale: {nice: false}},
    row_of: {field: "row", type: "nominal", title: rowTitle, sort: null, scale: {domain: rows}, axis: {labelLimit: narrow ? 70 : 160, labelOverlap: "greedy"}},
    kind: {field: "kind", type: "nominal", title: kind, scale: colours},
    lane: lanes > 1 ? {field: "lane", type: "ordinal", sort: null} : null,
    opacity: chosen ? {condition: {test: "datum.slot === chosen", value: 1}, value: 0.45} : null,
  };
  const shown = filled(CONTENT.templates.bars, gaps);
  const spec = {
    data: {values},
    config: {...CONTENT.config, legend: {...CONTENT.config.legend, orient: narrow ? "bottom" : "right", columns: narrow ? 2 : 1}},
    params: chosen ? [{name: "chosen", value: chosen()}] : [],
    ...shown, width: Math.max(140, room - (narrow ? 95 : 260)), height: rows.length * height,
  };
  const embedded = await vegaEmbed(place, spec, {
    actions: false, renderer: values.length > 2000 ? "canvas" : "svg", logLevel: ERRORS_ONLY,
    tooltip: (_, event, item, over) => hover(event, over && item.datum?.start !== undefined ? lines(item.datum) : null),
  });
  if (click) embedded.view.addEventListener("click", (_, item) => { if (item?.datum?.slot !== undefined) click(item.datum); });
  place.addEventListener("pointerleave", () => hover(null, null));
  return embedded.view;
}

function whenWide(place, draw) {
  const resized = new ResizeObserver(() => {
    const room = place.clientWidth;
    if (room && Math.abs(room - (place.drawnAt || 0)) > 40) { place.drawnAt = room; draw(); }
  });
  resized.observe(place);
}

// Creates the transfers of ranks over time, coloured by reason of the wait or by light.
function ganttSection(plan, edges, slot, go) {
  const box = element("section", {class: "gantt"});
  const place = element("div", {class: "figure"});
  const perRank = plan.messages.source.length / plan.ranks;
  const span = Math.max(1, Math.min(RANKS_AT_ONCE, plan.ranks, Math.floor(BARS_AT_ONCE / Math.max(1, perRank))));
  let first = 0;
  let by = plan.light ? "light" : "waits";
  let view = null;
  const few = plan.light && plan.light.values.length <= 16;
  const draw = async () => {
    const rows = Array.from({length: Math.min(span, plan.ranks - first)}, (_, at) => first + at);
    const values = [];
    const met = new Map();
    let lanes = 1;
    plan.messages.source.forEach((source, at) => {
      if (source < first || source >= first + span) return;
      const key = `${source} ${plan.messages.slot[at]}`;
      const lane = met.get(key) || 0;
      met.set(key, lane + 1);
      lanes = Math.max(lanes, lane + 1);
      values.push({
        at, lane, slot: plan.messages.slot[at], row: source, start: plan.messages.start[at], end: plan.messages.end[at],
        kind: by === "waits" ? NAMES[plan.waits.for[at]] || "nothing" : few ? plan.light.values[plan.light.of[at]] ?? "converters" : plan.messages.slot[at],
      });
    });
    const colours = by === "waits" ? WAITS : few ? {domain: plan.light.values, range: plan.light.colours} : {scheme: "viridis"};
    if (view) view.finalize();
    view = await drawBars(place, values, {
      rows, kind: by === "waits" ? "Waits for" : few ? plan.light.name : "Slot", colours, chosen: slot, rowTitle: "Sending rank", height: Math.max(rows.length > 20 ? 13 : 18, lanes > MOST_LANES ? 0 : 4 * lanes), lanes: lanes > MOST_LANES ? 1 : lanes,
      lines: (bar) => [
        ["transfer", ends(plan, bar.at)], ["slot", bar.slot], ["chunks", chunksOf(plan, bar.at)],
        ["from", reading(bar.start, "s")], ["to", reading(bar.end, "s")], ["waits for", waitOf(plan, bar.at)],
      ],
      click: (bar) => go(bar.slot),
    });
  };
  const turn = (step, text) => element("button", {
    type: "button", onclick: () => { first = Math.max(0, Math.min(plan.ranks - 1, first + step)); draw(); },
  }, text);
  const controls = element("div", {class: "controls"},
    plan.light ? choice("Colour", [["light", few ? plan.light.name : "slot"], ["waits", "what a transfer waits for"]], by, (value) => { by = value; draw(); }) : null,
    ...(span < plan.ranks ? [turn(-span, "Ranks before"), turn(span, "Next ranks")] : []),
    element("button", {type: "button", onclick: async () => save("times.svg", await view.toSVG())}, "Save as SVG"));
  box.append(element("h3", {}, "Times of ranks"),
    element("p", {class: "quiet hint"}, "A bar is a transfer of the rank that sends it; those of the chosen slot are the dark ones. The wheel zooms into time; a click goes to the slot."),
    controls, place);
  whenWide(place, draw);
  return {box, mark: () => { if (view) view.signal("chosen", slot()).runAsync(); }};
}

// Creates a training iteration: passes, and buckets with their waits and their sending.
function trainingSection(part) {
  const told = part.content;
  const place = element("div", {class: "figure"});
  const rows = ["computing", ...(told.many ? ["all_reduces"] : told.buckets.map((one) => one.name))];
  const values = [
    {row: "computing", kind: "forward", start: 0, end: told.forward, about: "forward pass"},
    {row: "computing", kind: "backward", start: told.forward, end: told.compute, about: "backward pass"},
  ];
  for (const one of told.buckets) {
    const row = told.many ? "all_reduces" : one.name;
    if (one.start > one.ready && !told.many) values.push({row, kind: "ready, waits", start: one.ready, end: one.start, about: one.about});
    const hidden = Math.min(one.end, Math.max(one.start, told.compute));
    if (hidden > one.start) values.push({row, kind: "sent, hidden", start: one.start, end: hidden, about: one.about});
    if (one.end > hidden) values.push({row, kind: "sent, exposed", start: hidden, end: one.end, about: one.about});
  }
  let view = null;
  const draw = async () => {
    if (view) view.finalize();
    view = await drawBars(place, values, {
      rows, kind: "", rowTitle: null, height: rows.length > 20 ? 12 : 19,
      colours: {
        domain: ["forward", "backward", "sent, hidden", "sent, exposed", "ready, waits"],
        range: ["#56B4E9", "#0072B2", "#009E73", "#D55E00", "#BBBBBB"],
      },
      lines: (bar) => [["what", bar.about], ["", bar.kind], ["from", reading(bar.start, "s")], ["to", reading(bar.end, "s")], ["for", reading(bar.end - bar.start, "s")]],
    });
  };
  whenWide(place, draw);
  const head = ["bucket", "size", "tensors", "layer", "ready", "sent from", "to"];
  const lines = told.buckets.map((one) => element("tr", {}, ...[
    one.name, reading(one.bytes, "B"), reading(one.tensors), one.layer, reading(one.ready, "s"), reading(one.start, "s"), reading(one.end, "s"),
  ].map((text) => element("td", {}, text))));
  return element("section", {class: "training"}, element("h3", {}, "Time-line of an iteration"),
    element("p", {class: "quiet hint"}, "Buckets in the order in which they are sent. The wheel zooms into time, dragging moves, a double click goes back."),
    element("div", {class: "controls"}, element("button", {type: "button", onclick: async () => save("time-line.svg", await view.toSVG())}, "Save as SVG")),
    place,
    element("details", {open: told.buckets.length <= 16}, element("summary", {}, "Buckets"),
      element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Buckets"}, element("table", {},
        element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {scope: "col"}, text)))), element("tbody", {}, ...lines)))));
}
