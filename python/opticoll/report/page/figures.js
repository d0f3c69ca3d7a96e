"use strict";
// Figures of a table over columns that the reader chooses; `figures.py` draws the same figures.

const KINDS = [["lines", "Lines"], ["points", "Points"], ["heat", "Heat map"], ["pareto", "Pareto front"]];

const ERRORS_ONLY = 1;

const EDGE = 6;

// Width of the window in pixels up to which the choices of a figure are closed at first.
const PHONE = 700;

// Columns that follow from other columns.
const FOLLOW = ["injection_bandwidth", "chosen", "specification"];

function filled(template, gaps) {
  if (typeof template === "string" && template.startsWith("$")) return gaps[template.slice(1)];
  if (Array.isArray(template)) return template.map((one) => filled(one, gaps)).filter((one) => one !== null);
  if (template && typeof template === "object") {
    const pairs = Object.entries(template).map(([name, one]) => [name, filled(one, gaps)]);
    return Object.fromEntries(pairs.filter(([, one]) => one !== null));
  }
  return template;
}

// Returns the properties of a column on an axis.
function axisOf(told, log) {
  const axis = {field: told.field, title: told.title, type: told.type};
  if (told.type === "quantitative") {
    axis.axis = {labelExpr: told.labels, labelOverlap: "greedy", labelSeparation: 6};
    if (log) axis.axis.values = told.ticks;
    axis.scale = log ? {type: "log", base: told.base, nice: false, padding: EDGE} : {zero: false, padding: EDGE};
  } else if (told.domain) {
    axis.sort = told.domain;
    axis.axis = {labelAngle: 0};
  }
  return axis;
}

// Returns the properties of a column that is shown by colours, markers or lines.
function keyOf(told, look) {
  if (!told) return null;
  if (!told.domain) {
    return look === "colours" ? {field: told.field, title: told.title, type: told.type} : null;
  }
  return {
    field: told.field, title: told.title, type: "nominal",
    scale: {domain: told.domain, range: told[look]},
    legend: told.labels ? {labelExpr: told.labels} : {},
  };
}

// Returns the properties of a column that is shown by dashes.
function dashesOf(told) {
  return {...keyOf(told, "dashes"), scale: {domain: told.domain, range: CONTENT.dashes.slice(0, told.domain.length)}};
}

// Returns the marks of a figure; a mark without a value of the panels' column is in every panel.
function inEveryPanel(values, field) {
  const panels = [...new Set(values.map((one) => one[field]))].filter((one) => one !== null);
  return values.flatMap((one) => (one[field] === null && panels.length ? panels.map((panel) => ({...one, [field]: panel})) : [one]));
}

// Returns the values for the gaps of a template, as `_gaps` of figures.py does.
function gapsOf(told, chosen, apart, dashed) {
  const x = told[chosen.x];
  const y = told[chosen.y];
  const colour = told[chosen.colour];
  const facet = told[chosen.facet];
  const apartBy = facet ? [facet.field] : [];
  const sort = [
    {field: x.field, order: chosen.x_more ? "descending" : "ascending"},
    {field: y.field, order: chosen.y_more ? "descending" : "ascending"},
  ];
  return {
    x: axisOf(x, chosen.x_log),
    y: axisOf(y, chosen.y_log),
    column: {...axisOf(x, false), type: "ordinal", scale: {}},
    row: {...axisOf(colour || x, false), type: "ordinal", scale: {}},
    shade: {
      field: "least", type: "quantitative", title: `Least ${y.title.toLowerCase()}`,
      scale: {type: chosen.y_log ? "log" : "linear", scheme: "viridis"},
      legend: {labelExpr: y.labels},
    },
    least: {
      aggregate: [{op: "min", field: y.field, as: "least"}, {op: "argmin", field: y.field, as: "best"}],
      groupby: [...new Set([x, colour, facet].filter(Boolean).map((one) => one.field))],
    },
    there: {filter: `isValid(datum['${x.field}']) && isValid(datum['${y.field}'])`},
    everywhere: {filter: `!isValid(datum['${x.field}']) && isValid(datum['${y.field}'])`},
    colour: keyOf(colour, "colours"),
    shape: keyOf(colour, "shapes"),
    dash: dashed ? dashesOf(dashed) : keyOf(colour, "dashes"),
    form: keyOf(dashed || colour, "shapes"),
    detail: apart.map((field) => ({field})),
    running: {
      sort,
      window: [
        {op: chosen.y_more ? "max" : "min", field: y.field, as: "best_y"},
        {op: "row_number", as: "place"},
      ],
      groupby: apartBy,
    },
    lagging: {
      sort,
      window: [{op: "lag", field: "best_y", as: "best_before"}],
      groupby: apartBy,
    },
    on_front: {filter: `datum.place === 1 || datum['${y.field}'] ${chosen.y_more ? ">" : "<"} datum.best_before`},
    stair: chosen.x_more ? "step-before" : "step-after",
  };
}

// Returns whether, in these rows, the values of other columns determine a column's values.
function follows(column, others, rows) {
  const known = new Map();
  return rows.every((row) => {
    const key = JSON.stringify(others.map((one) => one.values[row]));
    if (!known.has(key)) known.set(key, column.values[row]);
    return known.get(key) === column.values[row];
  });
}

// Returns the lines on fixed values and omitted rows, as `_caption` of figures.py does.
function captionOf(part, chosen, held, rows, count) {
  const used = [chosen.x, chosen.y, chosen.colour, chosen.facet, ...held.map((one) => one.name), ...FOLLOW];
  const lines = held.map((one) => `${one.heading}: ${reading(chosen.held[one.name], one.unit)}`);
  const across = part.columns.find((one) => one.name === chosen.x);
  const isThere = (row) => across.values[row] !== null;
  const isLines = chosen.kind === "lines";
  const drawn = isLines ? rows : rows.filter(isThere);
  const level = isLines ? rows.filter((row) => !isThere(row)) : [];
  if (drawn.length < count) lines.push(`${drawn.length} of ${count} rows`);
  const texts = part.columns.filter((one) => one.asked && !one.number && !used.includes(one.name));
  const at = (one, some) => [...new Set(some.map((row) => one.values[row]))];
  const leftOut = texts.map((one) => [one, [...new Set(one.values)].filter((value) => !at(one, drawn).includes(value))]);
  const dashed = texts.filter((one) => new Set(one.values).size > 1).map((one) => [one, at(one, level)]);
  for (const [said, named] of [["left out", leftOut], ["dashed across", dashed]]) {
    const told = named.find(([, values]) => values.length && !values.includes(null));
    if (told) lines.push(`${said}: ${told[0].heading.toLowerCase()} ${told[1].join(", ")}`);
  }
  return lines;
}

function figureSection(table) {
  const part = table.part;
  const chosen = {...part.choice, held: {...part.choice.held}};
  const told = Object.fromEntries(part.columns.map((column) => [column.name, column.channel]));
  const controls = element("div", {class: "controls"});
  const place = element("div", {class: "figure"});
  const note = element("p", {class: "quiet", role: "status"});
  let view = null;

  const draw = async () => {
    const named = ["x", "y", "colour", "facet"].map((role) => chosen[role]).filter(Boolean);
    const apart = part.columns.filter((one) => one.asked && !named.includes(one.name));
    const used = part.columns.filter((one) => named.includes(one.name) || one.asked);
    const held = part.columns.filter((one) => !named.includes(one.name) && chosen.held[one.name] !== undefined);
    const rows = table.kept.filter((row) => held.every((one) => one.values[row] === null || one.values[row] === chosen.held[one.name]));
    const facet = told[chosen.facet];
    const marks = rows.map((row) => ({
      row, ...Object.fromEntries(used.map((one) => [one.channel.field, one.values[row]])),
    }));
    const values = facet ? inEveryPanel(marks, facet.field) : marks;
    const axes = part.columns.filter((one) => [chosen.x, chosen.colour, chosen.facet].includes(one.name));
    const lines = apart.filter((one) => !follows(one, axes, rows));
    const free = lines.filter((one) => !FOLLOW.includes(one.name) && one.channel.domain && one.channel.domain.length > 1 && one.channel.domain.length <= CONTENT.dashes.length);
    const gaps = gapsOf(told, chosen, lines.map((one) => one.channel.field), (free.find((one) => !one.number) ?? free[0])?.channel);
    const shown = filled(CONTENT.templates[chosen.kind], gaps);
    const room = Math.max(240, place.clientWidth || 900);
    const panels = facet ? new Set(values.map((one) => one[facet.field])).size : 1;
    const across = Math.max(1, Math.min(panels === 4 ? 2 : panels, 3, Math.floor((room - 140) / 260)));
    const narrow = room < 620;
    const width = Math.max(180, Math.floor((room - (narrow ? 90 : 290)) / across - (facet ? 45 : 0)));
    const size = {width, height: Math.round(Math.max(220, Math.min(440, 0.7 * width)))};
    const caption = captionOf(part, chosen, held, rows, table.kept.length);
    const spec = {
      ...(caption.length ? {title: {text: caption, ...CONTENT.caption}} : {}),
      data: {values},
      config: {...CONTENT.config, ...(narrow ? {legend: {...CONTENT.config.legend, orient: "bottom", columns: 1}} : {})},
      ...(facet
        ? {
          facet: {field: facet.field, title: facet.title, type: "nominal", header: facet.labels ? {labelExpr: facet.labels} : {}},
          columns: across, resolve: CONTENT.resolve, spec: {...shown, ...size},
        }
        : {...shown, ...size}),
    };
    note.textContent = rows.length === table.kept.length ? "" : `${rows.length.toLocaleString("en")} of ${table.kept.length.toLocaleString("en")} rows: those with the values chosen above.`;
    if (view) view.finalize();
    const embedded = await vegaEmbed(place, spec, {
      actions: false, renderer: "svg", logLevel: ERRORS_ONLY,
      tooltip: (_, event, item, over) => hover(event, over ? linesOf(item) : null),
    });
    view = embedded.view;
    view.addEventListener("click", (_, item) => { const row = rowOf(item); if (row !== null) table.show(row); });
  };

  const rowOf = (item) => item?.datum?.row ?? item?.datum?.best?.row ?? null;
  const linesOf = (item) => {
    const row = rowOf(item);
    if (row === null) return null;
    const named = new Set([chosen.x, chosen.y, chosen.colour, chosen.facet]);
    return part.columns.filter((one) => named.has(one.name) || (one.asked && !one.long))
      .map((one) => [one.heading, reading(one.values[row], one.unit)]);
  };

  const set = (role) => (value) => {
    chosen[role] = value;
    if (role === "x" || role === "y") chosen[`${role}_log`] = Boolean(told[value].wide);
    drawControls();
    controls.querySelector(`[data-role="${role}"] select, [data-role="${role}"] input`)?.focus();
    draw();
  };
  const drawControls = () => {
    const any = part.columns.map((one) => [one.name, one.heading]);
    const numbers = part.columns.filter((one) => one.number).map((one) => [one.name, one.heading]);
    const few = part.columns.filter((one) => one.channel.domain).map((one) => [one.name, one.heading]);
    const heat = chosen.kind === "heat";
    const pareto = chosen.kind === "pareto";
    const asked = [
      ["kind", choice("Figure", KINDS, chosen.kind, set("kind"))],
      ["x", choice("Across", pareto ? numbers : any, chosen.x, set("x"))],
      ["y", choice(heat ? "Shade" : "Upwards", numbers, chosen.y, set("y"))],
      ["colour", choice(heat ? "Rows" : "Colour", [...(heat ? [] : [["", "none"]]), ...(heat ? any : few)], chosen.colour, set("colour"))],
      ["facet", choice("Panels", [["", "none"], ...few], chosen.facet, set("facet"))],
    ];
    for (const axis of ["x", "y"]) {
      const name = axis === "x" ? "across" : heat ? "of shade" : "upwards";
      if (told[chosen[axis]].positive && !(heat && axis === "x")) {
        asked.push([`${axis}_log`, tick(`logarithmic ${name}`, chosen[`${axis}_log`], set(`${axis}_log`))]);
      }
      if (pareto) asked.push([`${axis}_more`, tick(`more is better ${name}`, Boolean(chosen[`${axis}_more`]), set(`${axis}_more`))]);
    }
    const used = part.columns.filter((one) => [chosen.x, chosen.colour, chosen.facet].includes(one.name));
    const every = Array.from({length: part.count}, (_, row) => row);
    for (const column of part.columns) {
      if (!column.asked || column.long || !column.channel.domain || FOLLOW.includes(column.name)) continue;
      // The columns of the figure already determine the value.
      if (column.name === chosen.y || follows(column, used, every)) continue;
      const known = column.channel.domain;
      const at = known.indexOf(chosen.held[column.name]);
      asked.push([`held_${column.name}`, choice(column.heading, [["-1", "all"], ...known.map((value, place) => [String(place), reading(value, column.unit)])], String(at), (place) => {
        if (place === "-1") delete chosen.held[column.name]; else chosen.held[column.name] = known[place];
        draw();
      })]);
    }
    controls.replaceChildren(...asked.map(([role, control]) => { control.dataset.role = role; return control; }));
    controls.append(element("button", {
      type: "button", onclick: async () => save("figure.svg", await view.toSVG()),
    }, "Save as SVG"));
  };

  table.changed.push(draw);
  drawControls();
  const resized = new ResizeObserver(() => {
    const room = place.clientWidth;
    if (room && Math.abs(room - (place.drawnAt || 0)) > 40) { place.drawnAt = room; draw(); }
  });
  resized.observe(place);
  place.addEventListener("pointerleave", () => hover(null, null));
  return element("section", {class: "figures"}, element("h3", {}, "Figure"),
    element("p", {class: "quiet hint"}, "Point at a mark for its numbers; a click opens its row. The wheel zooms, dragging moves, a double click goes back. The figure shows the rows that pass the filters of the table."),
    element("details", {class: "choices", open: innerWidth > PHONE}, element("summary", {}, "What the figure shows"), controls),
    note, place);
}
