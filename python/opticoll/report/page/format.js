"use strict";
// Conversion of numbers to text and back, and creation of elements of the page.

const SCALES = {
  "s": [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]],
  "B": [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]],
  "bit/s": [[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]],
};

// Further units that a reader may write after a number.
const WRITTEN = {
  "us": 1e-6, "min": 60, "h": 3600, "%": 0.01,
  "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12,
};

function reading(value, unit) {
  if (value === null || value === undefined) return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (unit === "%") return `${digits(100 * value)} %`;
  const scale = SCALES[unit];
  if (!scale) return unit ? `${digits(value)} ${unit}` : digits(value);
  if (value === 0) return "0";
  const [factor, name] = scale.find(([factor]) => Math.abs(value) >= factor * 0.99995) || scale.at(-1);
  return `${digits(value / factor)} ${name}`;
}

function digits(value) {
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size < 1e-4 && size > 0) return value.toExponential(2);
  return value.toLocaleString("en", {maximumSignificantDigits: Math.max(4, Math.ceil(Math.log10(size)))});
}

// Parses a number with a unit, such as `25us`, `4MiB`, `40Gb/s` or `5 %`; NaN for other texts.
function written(text, unit) {
  const parts = /^\s*(-?[\d.,]*\d(?:e[+-]?\d+)?)\s*([a-zµ%/]*)\s*$/i.exec(text);
  if (!parts) return NaN;
  const number = Number(parts[1].replaceAll(",", ""));
  const name = parts[2];
  if (!name) return unit === "%" ? number / 100 : number;
  const own = (SCALES[unit] || []).find(([, known]) => known.toLowerCase() === name.toLowerCase());
  if (own) return number * own[0];
  const factor = WRITTEN[name.toLowerCase()];
  return factor === undefined ? NaN : number * factor;
}

function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

// Creates an element with attributes and children; attributes that begin with `on` are listeners.
function element(name, attributes = {}, ...children) {
  const made = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function facts(pairs) {
  const list = element("dl", {class: "facts"});
  for (const [name, value, meaning] of pairs) {
    list.append(element("dt", {title: meaning || null}, name), element("dd", {}, value));
  }
  return list;
}

// Creates a command line with a button that copies it.
function commandLine(text) {
  const button = element("button", {type: "button"}, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page from a file may have no access to the clipboard; `execCommand` needs no permission.
      const area = element("textarea", {}, text);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return element("div", {class: "command"}, element("code", {}, text), button);
}

function choice(label, options, value, change) {
  const select = element("select", {onchange: () => change(select.value)});
  for (const [own, text] of options) {
    select.append(element("option", {value: own, selected: own === value}, text));
  }
  return element("label", {}, label, select);
}

function tick(label, value, change) {
  const box = element("input", {type: "checkbox", onchange: () => change(box.checked)});
  box.checked = value;
  return element("label", {class: "beside"}, box, label);
}

// Shows a description of the element under the pointer.
function hover(event, lines) {
  const box = document.getElementById("hover");
  if (!lines) { box.hidden = true; return; }
  const rows = lines.map(([name, value]) =>
    element("tr", {}, element("th", {}, name), element("td", {}, value)));
  box.replaceChildren(element("table", {}, ...rows));
  box.hidden = false;
  const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
  const top = event.clientY + 14 + box.offsetHeight > innerHeight
    ? event.clientY - box.offsetHeight - 10 : event.clientY + 14;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, top)}px`;
}

function save(name, text) {
  const link = element("a", {
    download: name, href: URL.createObjectURL(new Blob([text], {type: "image/svg+xml"})),
  });
  link.click();
  URL.revokeObjectURL(link.href);
}
