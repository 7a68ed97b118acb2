// Columns of tables. Numbers stand in the page as bytes; they are read when they are first needed.

function bytesOf(text) {
  const raw = atob(text), found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
  return found.buffer;
}

class Column {
  constructor(spec) {
    this.name = spec.name;
    this.group = spec.group;
    this.kind = spec.kind;
    this.labels = spec.labels;
    this.share = spec.share;
    this.spec = spec;
  }

  // Numbers of labels, where words recur.
  get codes() {
    if (this.known === undefined) {
      const { u16, u32 } = this.spec;
      this.known = u16 ? new Uint16Array(bytesOf(u16)) : new Uint32Array(bytesOf(u32));
    }
    return this.known;
  }

  // Numbers, with NaN for what is missing; of words their labels, with null.
  get values() {
    if (this.read === undefined) this.read = this.decode();
    return this.read;
  }

  decode() {
    const { f64, f32, u16, low, step, values } = this.spec;
    if (values) return values;
    if (this.labels) return Array.from(this.codes, (code) => this.labels[code]);
    if (f64) return new Float64Array(bytesOf(f64));
    if (f32) return new Float32Array(bytesOf(f32));
    const places = new Uint16Array(bytesOf(u16)), found = new Float64Array(places.length);
    for (let row = 0; row < found.length; row++) found[row] = places[row] > 65534 ? NaN : low + places[row] * step;
    return found;
  }

  at(row) {
    return this.labels ? this.labels[this.codes[row]] : this.values[row];
  }

  // What occurs, each once, in the order of the rows.
  get distinct() {
    return [...new Set(this.values)].filter((value) => value !== null);
  }
}

class Table {
  constructor(spec) {
    this.caption = spec.caption;
    this.note = spec.note;
    this.hidden = new Set(spec.hidden);
    this.n = spec.n;
    this.columns = spec.columns.map((one) => new Column(one));
    this.byName = new Map(this.columns.map((one) => [one.name, one]));
  }

  column(name) {
    return this.byName.get(name);
  }

  get rows() {
    return Uint32Array.from({ length: this.n }, (_, row) => row);
  }
}

// ---------------------------------------------------------------- text

// Three digits, or more of those before the point; whole numbers as they are.
function shownNumber(value, whole = Number.isInteger(value)) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : String(value);
  const size = Math.abs(value);
  const far = size !== 0 && (size < 1e-4 || size >= 1e7);
  const text = far ? value.toExponential(1) : whole || value === 0 ? String(value)
    : size < 100 ? value.toPrecision(3) : value.toFixed(1);
  return text.replaceAll("-", "−");
}

function shownShare(value) {
  if (!Number.isFinite(value)) return "–";
  const text = (100 * value).toFixed(1).replace("-0.0", "0.0");
  return `${text.replace("-", "−")} %`;
}

function shown(value) {
  if (typeof value === "number") return shownNumber(value);
  return value === null || value === undefined ? "–" : value;
}

// The cells of a column in some rows; if one number has decimals, so have the others.
function shownCells(column, rows) {
  const values = rows.map((row) => column.at(row));
  if (column.kind !== "number") return values.map(shown);
  if (column.share) return values.map(shownShare);
  const whole = values.every((value) => Number.isInteger(value) || !Number.isFinite(value));
  return values.map((value) => shownNumber(value, whole));
}

// The middle of long names is left out, because names often differ at their ends.
function clipped(text, longest = 24) {
  const signs = Array.from(String(text));
  if (signs.length <= longest) return signs.join("");
  const tail = Math.floor((longest - 1) / 2);
  return [...signs.slice(0, longest - 1 - tail), "…", ...signs.slice(signs.length - tail)].join("");
}

// Plotly takes some tags in text for what they are in HTML.
function plain(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function csvOf(names, rows) {
  const cell = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "";
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function download(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// ---------------------------------------------------------------- elements

// Everything is set as text or as an attribute: no name can become a part of the page.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function button(text, action, attributes = {}) {
  return element("button", { type: "button", onclick: action, ...attributes }, text);
}

// The label stands beside its control, not around it: the options of a choice are no part of its name.
function labelled(text, control) {
  labelled.made = (labelled.made ?? 0) + 1;
  control.id = `control${labelled.made}`;
  return element("div", { class: "field" }, element("label", { for: control.id }, text), control);
}

// A choice among values; groups are [name, [[value, text], …]].
function choice(groups, value, action) {
  const select = element("select", { onchange: () => action(select.value) });
  for (const [group, options] of groups) {
    const made = options.map(([key, text]) => element("option", { value: key }, clipped(text, 40)));
    if (group === "") select.append(...made);
    else if (made.length) select.append(element("optgroup", { label: group }, ...made));
  }
  select.value = value;
  return select;
}

function announce(text) {
  document.getElementById("status").textContent = text;
}
