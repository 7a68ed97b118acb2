// A table with its picture, and the choice of the rows that both show.

class PanelView {
  constructor(host, name, spec) {
    Object.assign(this, { name, spec, table: new Table(spec.table), chosen: {}, least: 0 });
    const place = element("div", {});
    this.figure = spec.picture ? new Figure(name, spec.picture.title) : null;
    const controls = element("div", { class: "controls" }, ...this.controls());
    host.replaceChildren(controls, ...(this.figure ? [this.figure.element] : []), place);
    this.view = new TableView(place, this.table, name);
    this.update();
  }

  controls() {
    const made = this.spec.choose.map((field) => this.chooser(field)).filter((one) => one !== null);
    if (this.spec.threshold) {
      const input = element("input", { type: "number", min: 0, step: 0.05, value: 0 });
      input.addEventListener("input", () => {
        this.least = Number(input.value) || 0;
        this.update();
      });
      made.push(labelled(`Least size of ${this.spec.threshold}`, input));
    }
    return made;
  }

  // A choice of one value of a field; of "all" where there is such a value, it is the first.
  chooser(field) {
    const found = this.table.column(field).distinct.map(String);
    const first = found.includes("all") ? "all" : found[0];
    this.chosen[field] = first;
    if (found.length < 2) return null;
    const every = this.spec.every.includes(field) ? [["", `every ${field}`]] : [];
    const options = [...found.map((one) => [`=${one}`, one]), ...every];
    const act = (value) => {
      this.chosen[field] = value === "" ? null : value.slice(1);
      this.follow(field);
      this.update();
    };
    this.selects ??= {};
    this.selects[field] = choice([["", options]], `=${first}`, act);
    return labelled(field[0].toUpperCase() + field.slice(1), this.selects[field]);
  }

  // Columns are those of the view that is chosen.
  follow(field) {
    if (field !== "view" || !this.selects.column) return;
    const own = new Set(this.rowsOf({ view: this.chosen.view }).map((row) => this.table.column("column").at(row)));
    for (const option of this.selects.column.options) option.hidden = !own.has(option.value.slice(1));
    if (!own.has(this.chosen.column)) {
      this.chosen.column = [...own][0];
      this.selects.column.value = `=${this.chosen.column}`;
    }
  }

  rowsOf(chosen) {
    const wanted = Object.entries(chosen).filter(([, value]) => value !== null && value !== undefined);
    const columns = wanted.map(([field, value]) => [this.table.column(field), value]);
    return Array.from(this.table.rows).filter((row) => columns.every(([one, value]) => String(one.at(row)) === value));
  }

  update() {
    let rows = this.rowsOf(this.chosen);
    if (this.least > 0) {
      const sizes = this.table.column(this.spec.threshold);
      rows = rows.filter((row) => Math.abs(sizes.at(row)) >= this.least);
    }
    this.view.choose(rows, Object.entries(this.chosen).filter(([, value]) => value !== null && value !== undefined));
    const how = this.spec.picture;
    if (this.figure) this.figure.draw(() => drawings[how.kind](this.table, rows, how));
  }
}
