// A table in pages, which can be sorted by each column, searched and saved as CSV.

const ROWS_OF_A_PAGE = 15;

class TableView {
  // `file` is what a saved table is called; `all` has the columns that go into it.
  constructor(host, table, file, all = table.columns) {
    Object.assign(this, { host, table, file, all, page: 0, sorted: null, sought: "", chosen: new Set() });
    this.rows = table.rows;
    this.build();
    this.show();
  }

  build() {
    const search = element("input", { type: "search", autocomplete: "off" });
    search.addEventListener("input", () => this.search(search.value));
    const few = this.table.n <= ROWS_OF_A_PAGE;
    const tools = few ? [] : [element("div", { class: "controls" }, labelled("Search the table", search))];
    this.head = element("tr", {});
    this.body = element("tbody", {});
    this.caption = element("span", {}, this.table.caption);
    const shownTable = element("table", {}, element("caption", {}, this.caption), element("thead", {}, this.head), this.body);
    const region = { class: "scroll", role: "region", tabindex: 0, "aria-label": this.table.caption };
    this.count = element("span", { role: "status" });
    this.back = button("Previous rows", () => this.turn(-1));
    this.next = button("Next rows", () => this.turn(1));
    const save = button("Save as CSV", () => this.save(), { class: "csv" });
    const pages = element("div", { class: "pages" }, this.count, this.back, this.next, save);
    this.host.replaceChildren(...tools, element("div", region, shownTable), pages);
    if (this.table.note) this.host.append(element("p", { class: "note" }, this.table.note));
    this.headings();
  }

  // A saved table has those too that are not shown.
  get columns() {
    return this.table.columns.filter((one) => !this.table.hidden?.has(one.name) && !this.chosen.has(one.name));
  }

  headings() {
    this.head.replaceChildren(...this.columns.map((column) => {
      const order = this.sorted?.column === column ? this.sorted.order : "none";
      const attributes = { scope: "col", "aria-sort": order };
      if (column.kind === "number") attributes.class = "number";
      return element("th", attributes, button(column.name, () => this.sort(column)));
    }));
  }

  // ------------------------------------------------------------ which rows, in which order

  // Show other rows of the table. Fields that are the same in all of them need no column.
  choose(rows, chosen = []) {
    this.rows = rows;
    this.chosen = new Set(chosen.map(([field]) => field));
    const filters = chosen.filter(([, value]) => value !== "all").map(([field, value]) => `${field}: ${clipped(value, 40)}`);
    this.caption.textContent = this.table.caption + (filters.length ? ` (${filters.join(", ")})` : "");
    this.page = 0;
    this.headings();
    this.show();
  }

  search(text) {
    this.sought = text.trim().toLowerCase();
    this.page = 0;
    this.show();
  }

  sort(column) {
    const again = this.sorted?.column === column;
    const first = column.kind === "number" ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    this.sorted = { column, order: again && this.sorted.order === first ? other : first };
    this.page = 0;
    this.headings();
    this.head.children[this.columns.indexOf(column)].firstChild.focus();
    this.show();
  }

  get found() {
    if (!this.sought) return this.rows;
    const texts = this.table.columns.filter((one) => one.kind === "text");
    const matches = texts.map((one) => matching(one, this.sought));
    return this.rows.filter((row) => matches.some((has) => has(row)));
  }

  get ordered() {
    const rows = Array.from(this.found);
    if (!this.sorted) return rows;
    const { column, order } = this.sorted, sign = order === "ascending" ? 1 : -1;
    const values = column.values;
    const compare = column.kind === "number" ? (a, b) => a - b : (a, b) => WORDS.compare(a, b);
    const missing = (value) => value === null || Number.isNaN(value);
    return rows.sort((a, b) => {  // what is missing comes last either way
      const [one, other] = [values[a], values[b]];
      if (missing(one) || missing(other)) return missing(one) - missing(other);
      return sign * compare(one, other);
    });
  }

  // ------------------------------------------------------------ what is seen

  show() {
    this.order = this.ordered;
    const last = Math.max(Math.ceil(this.order.length / ROWS_OF_A_PAGE) - 1, 0);
    this.page = Math.min(Math.max(this.page, 0), last);
    const first = this.page * ROWS_OF_A_PAGE;
    const rows = this.order.slice(first, first + ROWS_OF_A_PAGE);
    this.body.replaceChildren(...this.lines(rows));
    this.back.hidden = this.next.hidden = last === 0;
    this.back.disabled = this.page === 0;
    this.next.disabled = this.page === last;
    const total = this.order.length.toLocaleString("en");
    this.count.textContent = rows.length === 0 ? "No rows"
      : rows.length === this.order.length ? `${total} ${rows.length === 1 ? "row" : "rows"}`
      : `Rows ${(first + 1).toLocaleString("en")} to ${(first + rows.length).toLocaleString("en")} of ${total}`;
  }

  lines(rows) {
    const columns = this.columns.map((column) => [column, shownCells(column, rows)]);
    return rows.map((_, k) => element("tr", {}, ...columns.map(([column, cells]) => {
      const look = column.kind === "number" ? "number" : cells[k].length > 20 ? "long" : null;
      return element("td", { class: look }, cells[k]);
    })));
  }

  turn(step) {
    this.page += step;
    this.show();
  }

  save() {
    const names = this.all.map((one) => one.name);
    const rows = this.order.map((row) => this.all.map((one) => one.at(row)));
    download(`${this.file}.csv`, csvOf(names, rows), "text/csv");
  }
}

const WORDS = new Intl.Collator("en", { numeric: true });

// Whether the word in a row has the text in it; each label is looked at once.
function matching(column, text) {
  const has = (word) => word !== null && word.toLowerCase().includes(text);
  if (!column.labels) return (row) => has(column.values[row]);
  const found = column.labels.map(has), codes = column.codes;
  return (row) => found[codes[row]];
}
