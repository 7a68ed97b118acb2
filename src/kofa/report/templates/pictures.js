// Pictures of tables, with Plotly: each a function of a table, the rows that are shown, and what is
// drawn of them. It returns traces, a layout and a height.

// Okabe and Ito (2008): distinct with any kind of colour vision.
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F"];
const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x"];
const MOST_LINES = 40;  // rows of a picture that are high enough for text

// How a class looks: as many colours with one symbol each, then with the next symbols.
function classLook(k) {
  return { color: COLOURS[k % COLOURS.length], symbol: SYMBOLS[(k + Math.floor(k / COLOURS.length)) % SYMBOLS.length] };
}

// Of numbers: viridis, without its darkest part where the page is dark.
function valueScale() {
  if (document.documentElement.dataset.theme !== "dark") return "Viridis";
  return [[0, "#4a7fc1"], [0.33, "#21918c"], [0.66, "#5ec962"], [1, "#fde725"]];
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const drawings = {
  heat(table, rows, how) {
    const [ys, xs] = [names(table, rows, how.rows), names(table, rows, how.columns)];
    const kept = how.most ? strongest(table, rows, how, ys, how.most) : ys;
    const z = kept.map(() => xs.map(() => null)), written = [];
    const hasSpace = kept.length <= MOST_LINES && xs.length <= (isNarrow() ? 4 : 12);
    const [yAt, xAt] = [places(kept), places(xs)];
    const [ry, rx, rv] = [how.rows, how.columns, how.value].map((one) => table.column(one));
    for (const row of rows) {
      const y = yAt.get(ry.at(row)), x = xAt.get(rx.at(row));
      if (y === undefined) continue;
      const value = rv.at(row);
      z[y][x] = Number.isNaN(value) ? null : value;
      const text = cellText(table, row, how, value, hasSpace);
      if (text) written.push({ x, y, text, value });
    }
    const scale = how.signed ? signedScale() : amountScale(), limits = heatRange(z, how);
    const hover = kept.map((y) => xs.map((x) => `${plain(y)}, ${plain(x)}`));
    const height = Math.min(Math.max(22, 300 / kept.length), 34);
    const each = kept.length > MOST_LINES ? 12 : height;
    return {
      data: [{
        type: "heatmap", z, customdata: hover, xgap: 1, ygap: 1,
        hovertemplate: `%{customdata}: %{z:${how.share ? ".1%" : ".3~g"}}<extra></extra>`,
        hoverongaps: false, colorscale: scale, ...limits, showscale: !how.write,
        colorbar: { thickness: 12, tickformat: how.share ? ".0%" : "" },
      }, writing(written, scale, limits)],
      layout: {
        xaxis: { ...nameAxis(xs, 1000), side: "bottom", title: how.column_title },
        yaxis: { ...nameAxis(kept, each), autorange: "reversed", title: how.row_title },
      },
      height: 110 + each * kept.length,
    };
  },

  bars(table, rows, how) {
    const values = table.column(how.value), labels = table.column(how.label);
    const order = Array.from(rows);
    if (how.by_size) order.sort((a, b) => Math.abs(values.at(b)) - Math.abs(values.at(a)));
    const kept = order.slice(0, how.most ?? 40);
    const factors = how.signed ? new Set(kept.map((row) => table.column("factor")?.at(row))) : [];
    const ys = kept.map((row) => shown(labels.at(row))
      + (factors.size > 1 ? `, ${table.column("factor").at(row)}` : ""));
    const certain = kept.map((row) => isCertain(table, row, how.pale));
    return {
      data: [{
        type: "bar", orientation: "h", y: kept.map((_, k) => k), x: kept.map((row) => values.at(row)),
        customdata: ys.map(plain), marker: { color: certain.map((yes) => colour(yes ? "mark" : "pale")) },
        hovertemplate: `%{customdata}: %{x:${how.share ? ".1%" : ".4~g"}}<extra></extra>`,
      }],
      layout: {
        xaxis: { title: how.value, zeroline: true, tickformat: how.share ? ".0%" : "" },
        yaxis: { ...nameAxis(ys, 20), autorange: "reversed" },
      },
      height: 80 + 20 * Math.max(kept.length, 2),
    };
  },

  features(table, rows, how) {
    const shape = rows.length ? how.shapes[table.column("view").at(rows[0])] : undefined;
    if (!shape) return drawings.bars(table, rows, how);
    const z = Array.from({ length: shape[0] }, () => new Array(shape[1]).fill(null));
    const text = z.map((line) => [...line]);
    for (const row of rows) {
      const at = table.column("position").at(row);
      z[Math.floor(at / shape[1])][at % shape[1]] = table.column(how.value).at(row);
      text[Math.floor(at / shape[1])][at % shape[1]] = plain(shown(table.column(how.label).at(row)));
    }
    const none = { visible: false, constrain: "domain" };
    return {
      data: [{
        type: "heatmap", z, text, colorscale: amountScale(), colorbar: { thickness: 12 },
        hovertemplate: "feature %{text}, row %{y}, column %{x}: %{z:.3~g}<extra></extra>",
      }],
      layout: { xaxis: none, yaxis: { ...none, autorange: "reversed", scaleanchor: "x" } },
      height: 420,
      title: "The relevance of features, each at its place in the image",
    };
  },

  stacked(table, rows, how) {
    const labels = names(table, rows, how.label), at = places(labels);
    const data = names(table, rows, how.part).map((part, k) => {
      const own = Array.from(rows).filter((row) => table.column(how.part).at(row) === part);
      return {
        type: "bar", orientation: "h", name: plain(clipped(part, 30)),
        x: own.map((row) => table.column(how.value).at(row)),
        y: own.map((row) => at.get(table.column(how.label).at(row))),
        marker: { color: COLOURS[k % COLOURS.length], line: { color: colour("panel"), width: 1 } },
        hovertemplate: `${plain(part)}: %{x:.1%}<extra></extra>`,
      };
    });
    return {
      data,
      layout: {
        barmode: "stack", showlegend: true,
        legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0, traceorder: "normal" },
        xaxis: { tickformat: ".0%", range: [0, 1] },
        yaxis: { ...nameAxis(labels, 30), autorange: "reversed" },
      },
      height: 110 + 30 * labels.length + 20 * Math.ceil(data.length / 2),
    };
  },

  truth(table, rows, how) {
    const kept = spreadOver(rows, 2000);
    const [x, y, low, high] = [how.x, how.y, how.low, how.high]
      .map((one) => kept.map((row) => table.column(one).at(row)));
    const error = kept.length <= 300 && low.every(Number.isFinite) ? {
      type: "data", symmetric: false, array: high.map((v, k) => v - y[k]),
      arrayminus: low.map((v, k) => y[k] - v), thickness: 0.7, width: 0, color: colour("faint"),
    } : undefined;
    const ends = range([...x, ...y]);
    const type = ends[0] > 0 && ends[1] > 300 * ends[0] ? "log" : "linear";
    return {
      data: [
        { type: "scatter", mode: "lines", x: ends, y: ends, hoverinfo: "skip",
          line: { color: colour("muted"), width: 1, dash: "dash" } },
        { type: "scatter", mode: "markers", x, y, error_y: error,
          text: kept.map((row) => plain(shown(table.column(how.label).at(row)))),
          marker: { color: colour("mark"), size: 5 },
          hovertemplate: "%{text}: true %{x:.4~g}, predicted %{y:.4~g}<extra></extra>" },
      ],
      layout: { xaxis: { title: "true", ...ticksOf(type) }, yaxis: { title: "predicted", ...ticksOf(type) } },
      height: 420,
      said: kept.length < rows.length
        ? `${kept.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} values are drawn.` : "",
    };
  },

  calibration(table, rows, how) {
    const [x, y] = [how.x, how.y].map((one) => Array.from(rows, (row) => table.column(one).at(row)));
    const numbers = rows.length && table.column("kind").at(rows[0]) === "number";
    const line = { color: colour("muted"), width: 1, dash: "dash" };
    return {
      data: [
        { type: "scatter", mode: "lines", x: [0, 1], y: [0, 1], hoverinfo: "skip", line },
        { type: "scatter", mode: "lines+markers", x, y, line: { color: colour("mark") },
          customdata: Array.from(rows, (row) => table.column("n").at(row)),
          hovertemplate: "said %{x:.0%}, happened %{y:.0%} (n = %{customdata})<extra></extra>" },
      ],
      layout: {
        xaxis: { title: numbers ? "level of interval" : "probability", range: [0, 1.02], tickformat: ".0%" },
        yaxis: { title: numbers ? "share of values in it" : "how often it was so", range: [0, 1.02], tickformat: ".0%" },
      },
      height: 380,
    };
  },

  line(table, rows, how) {
    const [x, y] = [how.x, how.y].map((one) => Array.from(rows, (row) => table.column(one).at(row)));
    // The first steps are so large that nothing else could be seen.
    const [low, high] = range(y.slice(Math.floor(y.length / 10)));
    const pad = 0.06 * (high - low) || 1;
    return {
      data: [{ type: "scatter", mode: y.length > 1 ? "lines" : "markers", x, y, line: { color: colour("mark") },
        hovertemplate: "iteration %{x}: %{y:.6~g}<extra></extra>" }],
      layout: { xaxis: { title: how.x }, yaxis: { title: how.y, range: [low - pad, high + pad] } },
      height: 320,
    };
  },
};

// ---------------------------------------------------------------- parts of pictures

function names(table, rows, field) {
  const column = table.column(field), seen = new Set();
  for (const row of rows) seen.add(column.at(row));
  return [...seen];
}

function places(list) {
  return new Map(list.map((one, k) => [one, k]));
}

// The names with the largest values, in the order of these.
function strongest(table, rows, how, ys, most) {
  const best = new Map(ys.map((one) => [one, 0]));
  for (const row of rows) {
    const name = table.column(how.rows).at(row), size = Math.abs(table.column(how.value).at(row));
    if (size > best.get(name)) best.set(name, size);
  }
  return [...ys].sort((a, b) => best.get(b) - best.get(a)).slice(0, most);
}

function cellText(table, row, how, value, hasSpace) {
  if (how.stars) {
    const q = table.column(how.stars).at(row);
    return q < 0.001 ? "***" : q < 0.01 ? "**" : q < 0.05 ? "*" : "";
  }
  const mark = how.mark && table.column(how.mark).at(row) === "yes" ? "•" : "";
  if (!hasSpace || !(how.share || how.write)) return mark;
  if (how.write) return shown(value);
  return Math.abs(value) < 0.005 ? mark : `${(100 * value).toFixed(0)} %${mark && " •"}`;
}

// Text in the cells of a heat map, in the colour that is read better.
function writing(cells, scale, { zmin, zmax }) {
  const shade = ({ value }) => readable(colourAt(scale, (value - zmin) / (zmax - zmin)));
  return {
    type: "scatter", mode: "text", hoverinfo: "skip", x: cells.map((one) => one.x), y: cells.map((one) => one.y),
    text: cells.map((one) => one.text), textfont: { size: 11, color: cells.map(shade) },
  };
}

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

function colourAt(scale, share) {
  const at = Math.min(Math.max(share, 0), 1), k = Math.max(scale.findIndex(([end]) => end >= at), 1);
  const [[from, low], [to, high]] = [scale[k - 1], scale[k]], part = (at - from) / (to - from);
  const ends = channels(high);
  return channels(low).map((one, c) => one + part * (ends[c] - one));
}

// By the luminance of WCAG, in which black and white are read equally well on 0.18.
function readable(rgb) {
  const linear = rgb.map((one) => (one / 255) ** 2.2);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.18 ? "#000000" : "#ffffff";
}

function isNarrow() {
  return window.innerWidth < 600;
}

function ticksOf(type) {
  return type === "log" ? { type, dtick: 1 } : { type };
}

function isCertain(table, row, field) {
  const value = field === undefined ? "yes" : table.column(field).at(row);
  return typeof value === "number" ? value < 0.05 : value === "yes";
}

// An axis of names, one for each place; where they are too close, only some are written.
function nameAxis(list, each) {
  const step = Math.ceil(14 / each), kept = list.map((_, k) => k).filter((k) => k % step === 0);
  const longest = isNarrow() ? 14 : 24;
  return {
    tickvals: kept, ticktext: kept.map((k) => plain(clipped(shown(list[k]), longest))),
    showgrid: false, zeroline: false, range: [-0.5, list.length - 0.5],
  };
}

function amountScale() {
  return [[0, colour("none")], [1, colour("much")]];
}

function signedScale() {
  return [[0, colour("minus")], [0.5, colour("middle")], [1, colour("plus")]];
}

function heatRange(z, how) {
  const [low, high] = range(z.flat().filter((value) => value !== null));
  const size = how.limit ?? (Math.max(Math.abs(low), Math.abs(high)) || 1);
  if (how.signed) return { zmin: -size, zmax: size };
  return { zmin: how.least ?? low, zmax: high > (how.least ?? low) ? high : (how.least ?? low) + 1 };
}

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

// At most so many, at equal distances.
function spreadOver(rows, most) {
  const step = Math.ceil(rows.length / most);
  return Array.from(rows).filter((_, k) => k % step === 0);
}

// ---------------------------------------------------------------- figures

class Figure {
  constructor(name, title) {
    this.name = name;
    this.picture = element("div", { class: "picture", role: "img", "aria-label": title });
    this.text = element("span", {}, title);
    const save = (format) => button(format.toUpperCase(), () => this.save(format),
      { "aria-label": `Save the picture as ${format.toUpperCase()}: ${title}` });
    this.title = title;
    const tools = element("span", { class: "save" }, save("svg"), " ", save("png"));
    this.element = element("figure", {}, this.picture, element("figcaption", {}, this.text, tools));
    Figure.all.push(this);
  }

  // `make` gives traces, a layout and a height; it is called again when colours change.
  draw(make) {
    this.make = make;
    const { data, layout, height, said, title = this.title } = make();
    this.text.textContent = said ? `${title}. ${said}` : title;
    this.picture.style.height = `${height}px`;
    return Plotly.react(this.picture, data, inStyle(layout, height), {
      displayModeBar: false, responsive: true, displaylogo: false, doubleClick: "reset",
    });
  }

  save(format) {
    const { width, height } = this.picture.getBoundingClientRect();
    const options = { format, filename: this.name, width: Math.round(width), height: Math.round(height) };
    return Plotly.downloadImage(this.picture, options);
  }

  redraw() {
    if (this.make) this.draw(this.make);
  }
}
Figure.all = [];

function inStyle(layout, height) {
  const axis = (own = {}) => ({
    automargin: true, separatethousands: true, exponentformat: "power", gridcolor: colour("grid"), zerolinecolor: colour("faint"),
    linecolor: colour("line"), ...own, title: own.title ? { text: own.title, standoff: 10 } : undefined,
  });
  return {
    showlegend: false, margin: { l: 50, r: 20, t: 16, b: 40 }, ...layout, height, autosize: true,
    xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis), paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: colour("text") },
    hoverlabel: { font: { family: "system-ui, sans-serif" }, namelength: -1 },
  };
}
