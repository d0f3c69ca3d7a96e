"use strict";
// The table of rows: filters, order, columns, and the details of a row.

const ROWS_AT_ONCE = 50;

// Decodes a table of the page, with a list of values for each column.
function tableOf(part) {
  for (const column of [...part.columns, ...part.same]) {
    column.values ??= column.places.map((place) => column.words[place]);
    column.shown = !column.long;
  }
  return {
    part,
    count: part.count,
    columns: part.columns,
    filters: {},
    order: null,
    first: 0,
    open: new Set(),
    kept: null,
    changed: [],
  };
}

// Returns the indices of the rows that pass all filters, in the chosen order.
function keptRows(table) {
  let rows = Array.from({length: table.count}, (_, row) => row);
  for (const column of table.columns) {
    const passes = condition(table.filters[column.name] || "", column);
    if (passes) rows = rows.filter((row) => passes(column.values[row]));
  }
  if (table.order) {
    const {name, down} = table.order;
    const values = table.columns.find((column) => column.name === name).values;
    rows.sort((a, b) => compared(values[a], values[b], down) || a - b);
  }
  return rows;
}

// Rows without a value are last in both orders.
function compared(a, b, down) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", {numeric: true});
  return down ? -order : order;
}

// Parses a filter to a condition; null for an empty filter; throws an error for an invalid one.
function condition(text, column) {
  if (!text.trim()) return null;
  if (!column.number) {
    const wanted = text.toLowerCase().split("|").map((one) => one.trim());
    return (value) => wanted.some((one) => reading(value).toLowerCase().includes(one));
  }
  const range = text.split("..");
  if (range.length === 2) {
    const [least, most] = range.map((one) => numberOf(one, column));
    return (value) => value !== null && value >= least && value <= most;
  }
  const sign = /^\s*(<=|>=|<|>|=)?(.*)$/.exec(text);
  const than = numberOf(sign[2], column);
  const near = (value) => Math.abs(value - than) <= 5e-4 * Math.abs(than);
  const tests = {
    "<": (value) => value < than, "<=": (value) => value <= than || near(value),
    ">": (value) => value > than, ">=": (value) => value >= than || near(value), "=": near,
  };
  return (value) => value !== null && tests[sign[1] || "="](value);
}

function numberOf(text, column) {
  const number = written(text, column.unit);
  if (Number.isNaN(number)) throw new Error(`no number: ${text}`);
  return number;
}

function tableSection(table) {
  const box = element("section", {class: "table"});
  const said = element("p", {class: "quiet", role: "status"});
  const holder = element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Table"});
  const pages = element("div", {class: "controls"});
  const head = element("thead");
  const body = element("tbody");
  let printing = false;
  holder.append(element("table", {}, head, body));

  const drawHead = () => {
    const names = element("tr", {}, element("th", {class: "more"}, ""));
    const filters = element("tr", {class: "filters"}, element("th", {class: "more"}, ""));
    for (const column of table.columns.filter((one) => one.shown)) {
      const order = table.order && table.order.name === column.name
        ? (table.order.down ? "descending" : "ascending") : "none";
      const button = element("button", {
        type: "button", title: column.meaning, "data-sort": column.name,
        onclick: () => {
          const again = table.order && table.order.name === column.name;
          table.order = {name: column.name, down: again ? !table.order.down : false};
          drawHead();
          update();
          head.querySelector(`[data-sort="${CSS.escape(column.name)}"]`).focus();
        },
      }, column.heading);
      names.append(element("th", {
        class: column.number ? "number" : null, "aria-sort": order, scope: "col",
      }, button));
      const input = element("input", {
        type: "search", "aria-label": `Filter ${column.heading}`, "data-filter": column.name,
        placeholder: column.number ? "<, >, 1..8" : "contains",
        oninput: () => {
          try {
            condition(input.value, column);
            table.filters[column.name] = input.value;
            input.removeAttribute("aria-invalid");
            table.first = 0;
            update();
          } catch {
            input.setAttribute("aria-invalid", "true");
          }
        },
      });
      input.value = table.filters[column.name] || "";
      filters.append(element("th", {}, input));
    }
    head.replaceChildren(names, filters);
  };

  const drawRows = () => {
    const shown = table.columns.filter((one) => one.shown);
    body.replaceChildren();
    const rows = printing ? table.kept : table.kept.slice(table.first, table.first + ROWS_AT_ONCE);
    for (const row of rows) {
      const open = table.open.has(row);
      const button = element("button", {
        type: "button", "aria-expanded": String(open), "aria-label": `Details of row ${row + 1}`,
        onclick: () => {
          if (open) table.open.delete(row); else table.open.add(row);
          drawRows();
          body.querySelector(`[data-row="${row}"] button`).focus();
        },
      }, open ? "▾" : "▸");
      const line = element("tr", {"data-row": row, class: open ? "chosen" : null},
        element("td", {class: "more"}, button));
      for (const column of shown) {
        line.append(element("td", {class: column.number ? "number" : column.long ? "text" : null},
          reading(column.values[row], column.unit)));
      }
      body.append(line);
      if (open) {
        body.append(element("tr", {class: "detail"},
          element("td", {colspan: shown.length + 1}, details(table, row))));
      }
    }
    const last = Math.min(table.first + ROWS_AT_ONCE, table.kept.length);
    said.textContent = table.kept.length === table.count
      ? plural(table.count, "row") : `${table.kept.length.toLocaleString("en")} of ${plural(table.count, "row")}`;
    if (rows.length < table.kept.length) said.textContent += `; rows ${table.first + 1} to ${last} are shown`;
    drawPages();
  };

  const drawPages = () => {
    const turn = (step, text) => element("button", {
      type: "button",
      disabled: table.first + step < 0 || table.first + step >= table.kept.length,
      onclick: () => { table.first += step; drawRows(); },
    }, text);
    const several = table.kept.length > ROWS_AT_ONCE;
    pages.replaceChildren(...(several ? [turn(-ROWS_AT_ONCE, "Rows before"), turn(ROWS_AT_ONCE, "Next rows")] : []));
  };

  const update = () => {
    table.kept = keptRows(table);
    drawRows();
    table.changed.forEach((call) => call());
  };

  table.show = (row) => {
    if (!table.kept.includes(row)) return;
    table.open.add(row);
    table.first = Math.floor(table.kept.indexOf(row) / ROWS_AT_ONCE) * ROWS_AT_ONCE;
    drawRows();
    body.querySelector(`[data-row="${row}"]`).scrollIntoView({block: "center"});
  };

  const columns = element("details", {class: "columns-choice"}, element("summary", {}, "Columns"));
  const boxes = element("div", {class: "columns"});
  for (const column of table.columns) {
    boxes.append(tick(column.heading, column.shown, (on) => {
      column.shown = on;
      drawHead();
      drawRows();
    }));
  }
  columns.append(boxes);
  const clear = element("button", {
    type: "button",
    onclick: () => { table.filters = {}; table.order = null; table.first = 0; drawHead(); update(); },
  }, "Clear filters and order");
  const hint = element("p", {class: "quiet hint"},
    "A heading sorts. Filters take <1ms, >=64, 4MiB, 1..8 or part of a text; a|b is either.");
  table.kept = keptRows(table);
  drawHead();
  drawRows();
  // All rows are printed on paper.
  for (const [event, now] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => { printing = now; drawRows(); });
  }
  box.append(element("h3", {}, "Table"), hint, said, columns, holder, element("div", {class: "controls"}, clear), pages);
  return box;
}

// Creates the details of a row, with the command that computes the row.
function details(table, row) {
  const cells = [...table.columns, ...table.part.same]
    .filter((column) => column.values[row] !== null)
    .map((column) => [column.heading, reading(column.values[row], column.unit), column.meaning]);
  const command = commandOf(table.part, row);
  const tables = table.part.tables.filter((one) => one.rows[row].length).map((one) => nestedTable(one, one.rows[row]));
  return element("div", {}, command ? commandLine(command) : null, facts(cells), ...tables);
}

const NESTED_AT_ONCE = 100;

// Creates a nested table of a row, such as the candidates of auto.
function nestedTable(told, rows) {
  const number = told.columns.map((_, at) => rows.every((row) => row[at] === null || typeof row[at] === "number"));
  const kind = (at) => (number[at] ? "number" : null);
  const lines = rows.slice(0, NESTED_AT_ONCE).map((row) => element("tr", {}, ...row.map((value, at) =>
    element("td", {class: kind(at)}, reading(value, told.columns[at][2])))));
  const rest = rows.length - lines.length;
  return element("details", {class: "nested"}, element("summary", {title: told.meaning}, `${told.heading} (${rows.length})`),
    element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": told.heading}, element("table", {},
      element("thead", {}, element("tr", {}, ...told.columns.map(([, heading], at) => element("th", {class: kind(at), scope: "col"}, heading)))),
      element("tbody", {}, ...lines))),
    rest > 0 ? element("p", {class: "quiet"}, `and ${rest} more`) : null);
}

// Commands are stored as indices into a list of words, since most words recur in every row.
function commandOf(part, row) {
  const places = part.commands.places[row];
  return places === null ? null : places.map((place) => part.commands.words[place]).join(" ");
}
