// The samples as points of two factors, with a choice of axes and colours, and those that are
// selected as a table. Of very many samples some are drawn; a selection is of all of them.

const MOST_CLASSES = 14;

class Scatter {
  constructor(host, spec) {
    this.n = spec.n;
    this.total = spec.total;
    this.names = new Column({ name: "sample", ...spec.names });
    this.factors = spec.factors.map((one) => new Column(one));
    this.colours = spec.colours.map((one) => new Column(one));
    const order = new Column({ name: "order of the samples", kind: "number" });
    order.read = Float64Array.from({ length: spec.n }, (_, row) => row + 1);
    this.axes = [...this.factors, order];
    [this.x, this.y] = this.factors.length > 1 ? [0, 1] : [this.axes.length - 1, 0];
    const first = this.colours[0];
    this.by = first && (first.kind === "text" || ["covariates", "predictions"].includes(first.group)) ? "0" : "none";
    this.step = Math.ceil(this.n / spec.most_drawn);
    this.drag = "lasso";
    this.selected = null;
    this.figure = new Figure("samples", "Factors of the samples");
    this.place = element("div", {});
    host.replaceChildren(element("div", { class: "controls" }, ...this.controls()), this.figure.element, this.place);
    this.draw();
    this.listen();
    this.select(null, "");
  }

  controls() {
    const axes = [["", this.axes.map((one, k) => [k, one.name])]];
    const axis = (which) => choice(axes, this[which], (value) => {
      this[which] = Number(value);
      this.select(null, "");
      this.draw();
    });
    const drags = [["lasso", "select by a lasso"], ["select", "select by a box"], ["zoom", "zoom"], ["pan", "move"]];
    const drag = choice([["", drags]], this.drag, (value) => {
      this.drag = value;
      Plotly.relayout(this.figure.picture, { dragmode: value });
    });
    const by = choice(this.groups(), this.by, (value) => {
      this.by = value;
      this.draw();
      this.list();
    });
    const search = element("input", { type: "search", autocomplete: "off" });
    search.addEventListener("change", () => this.search(search.value));
    return [
      labelled("Across", axis("x")), labelled("Up", axis("y")), labelled("Colour by", by),
      labelled("Dragging does", drag), labelled("Select by name", search),
      button("Show all, select none", () => { search.value = ""; this.select(null, ""); this.draw(); }),
    ];
  }

  groups() {
    const groups = new Map([["", [["none", "nothing"]]]]);
    this.colours.forEach((one, k) => {
      if (!groups.has(one.group)) groups.set(one.group, []);
      groups.get(one.group).push([k, one.name]);
    });
    groups.set("factors", this.factors.map((one, k) => [`factor${k}`, one.name]));
    return [...groups];
  }

  get colouring() {
    if (this.by === "none") return null;
    return this.by.startsWith("factor") ? this.factors[Number(this.by.slice(6))] : this.colours[Number(this.by)];
  }

  // ------------------------------------------------------------ points

  draw() {
    this.figure.draw(() => {
      const longest = isNarrow() ? 24 : 40, by = this.colouring;
      const axis = (one) => ({ title: plain(clipped(one.name, longest)), automargin: isNarrow() });
      const layout = {
        dragmode: this.drag, hovermode: "closest", showlegend: by?.kind === "text",
        xaxis: axis(this.axes[this.x]), yaxis: axis(this.axes[this.y]),
        legend: isNarrow() ? { orientation: "h", y: -0.25 } : { title: { text: plain(clipped(by?.name ?? "", 24)) } },
        uirevision: `${this.x} ${this.y}`,
      };
      // Margins of a fixed size: for others all points would be drawn twice.
      if (!isNarrow()) layout.margin = { l: 70, r: by ? 180 : 20, t: 16, b: 50, autoexpand: false };
      return { data: this.traces(), layout, height: isNarrow() ? 420 : 560, said: this.said() };
    });
  }

  said() {
    const parts = [];
    const number = (n) => n.toLocaleString("en");
    if (this.n < this.total) parts.push(`${number(this.n)} of ${number(this.total)} samples, drawn at random, are in this file.`);
    if (this.step > 1) parts.push(`One in ${this.step} of ${number(this.n)} samples is drawn; a selection is of all of them.`);
    return parts.join(" ");
  }

  get drawn() {
    const rows = [];
    for (let row = 0; row < this.n; row += this.step) rows.push(row);
    return rows;
  }

  traces() {
    const by = this.colouring;
    if (by === null) return [this.trace(this.drawn, { color: colour("mark") })];
    if (by.kind === "number") {
      const known = this.drawn.filter((row) => Number.isFinite(by.values[row]));
      const missing = this.drawn.filter((row) => !Number.isFinite(by.values[row]));
      const look = {
        color: known.map((row) => by.values[row]), colorscale: valueScale(), showscale: true,
        colorbar: { title: { text: plain(clipped(by.name, 20)), side: "right" }, thickness: 12 },
      };
      return [this.trace(missing, { color: colour("faint") }, "missing"), this.trace(known, look)];
    }
    return this.classes(by).map(([name, rows, look]) => this.trace(rows, look, name));
  }

  // The frequent classes, the others together, and samples without any.
  classes(by) {
    const counts = new Map();
    for (const value of by.values) counts.set(value, (counts.get(value) ?? 0) + 1);
    const labels = by.labels ? by.labels.filter((one) => counts.has(one)) : [...counts.keys()].sort(WORDS.compare);
    const known = labels.filter((one) => one !== null);
    const ranked = [...known].sort((a, b) => counts.get(b) - counts.get(a));
    const frequent = new Set(known.length > MOST_CLASSES ? ranked.slice(0, MOST_CLASSES - 1) : known);
    const kept = known.filter((one) => frequent.has(one));
    const found = kept.map((label, k) => [label, [], classLook(k)]);
    const at = new Map(found.map((one) => [one[0], one]));
    const others = [`${known.length - kept.length} others`, [], { color: colour("faint") }];
    const missing = ["missing", [], { color: colour("faint"), symbol: "circle-open" }];
    for (const row of this.drawn) {
      const label = by.at(row);
      (label === null ? missing : at.get(label) ?? others)[1].push(row);
    }
    return [missing, others].filter((one) => one[1].length).concat(found);
  }

  trace(rows, look, name = "") {
    const by = this.colouring;
    const said = rows.map((row) => plain(this.names.at(row)) + (by ? `<br>${plain(by.name)}: ${plain(shown(by.at(row)))}` : ""));
    const selected = this.selected === null ? undefined
      : rows.map((row, k) => (this.selected.has(row) ? k : -1)).filter((k) => k >= 0);
    return {
      type: "scatter", mode: "markers", name: plain(clipped(name, 20)), customdata: rows, text: said,
      x: rows.map((row) => this.axes[this.x].values[row]), y: rows.map((row) => this.axes[this.y].values[row]),
      marker: { size: rows.length > 1500 ? 4 : 7, opacity: 0.85, ...look }, hovertemplate: "%{text}<extra></extra>",
      selectedpoints: selected, unselected: { marker: { opacity: 0.15 } },
    };
  }

  // ------------------------------------------------------------ selection

  listen() {
    this.figure.picture.on("plotly_selected", (event) => {
      if (!event || !(event.lassoPoints || event.range)) return;
      const inside = event.lassoPoints ? within(event.lassoPoints) : inBox(event.range);
      const xs = this.axes[this.x].values, ys = this.axes[this.y].values, rows = [];
      for (let row = 0; row < this.n; row++) if (inside(xs[row], ys[row])) rows.push(row);
      this.select(rows, "in the area that was drawn");
    });
    this.figure.picture.on("plotly_deselect", () => this.select(null, ""));
  }

  search(text) {
    const sought = text.trim().toLowerCase();
    if (!sought) this.select(null, "");
    else {
      const has = matching(this.names, sought);
      this.select(Array.from({ length: this.n }, (_, row) => row).filter(has), `with “${text.trim()}” in their names`);
    }
    this.draw();
  }

  select(rows, how) {
    this.selected = rows === null ? null : new Set(rows);
    this.how = how;
    if (rows !== null) announce(`${rows.length.toLocaleString("en")} samples are selected.`);
    this.list();
  }

  // The selected samples; a saved table has all that is known of them.
  list() {
    const some = this.selected !== null;
    const columns = [this.names, this.axes[this.x]];
    if (this.y !== this.x) columns.push(this.axes[this.y]);
    if (this.colouring && !columns.includes(this.colouring)) columns.push(this.colouring);
    const n = some ? this.selected.size : this.n;
    const count = `${n.toLocaleString("en")} ${n === 1 ? "sample" : "samples"}`;
    const table = { caption: some ? `Selected: ${count} ${this.how}` : `All ${count}`, n: this.n, columns, note: "A saved table has all factors and colours.", rows: some ? [...this.selected] : Array.from({ length: this.n }, (_, row) => row) };
    this.view = new TableView(this.place, table, some ? "selected-samples" : "samples", [this.names, ...this.factors, ...this.colours]);
  }
}

// Whether a point is in a polygon: an odd number of its edges are to the right.
function within({ x, y }) {
  return (px, py) => {
    let inside = false;
    for (let i = 0, j = x.length - 1; i < x.length; j = i++) {
      if (y[i] > py !== y[j] > py && px < ((x[j] - x[i]) * (py - y[i])) / (y[j] - y[i]) + x[i]) inside = !inside;
    }
    return inside;
  };
}

function inBox({ x, y }) {
  const [left, right] = range(x), [low, high] = range(y);
  return (px, py) => px >= left && px <= right && py >= low && py <= high;
}
