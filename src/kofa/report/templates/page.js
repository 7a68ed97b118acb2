// The page: colours, the copy of the code, and one thing after the other, the samples first.

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").setAttribute("aria-pressed", String(theme === "dark"));
  for (const figure of Figure.all) figure.redraw();
}

document.getElementById("theme").addEventListener("click", () => {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
});
dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
setTheme(dark.matches ? "dark" : "light");

// Paper is white, and narrower than most screens.
let before = null;
window.addEventListener("beforeprint", () => {
  before = document.documentElement.dataset.theme;
  setTheme("light");
  for (const figure of Figure.all) if (figure.make) Plotly.relayout(figure.picture, { width: 660 });
});
window.addEventListener("afterprint", () => {
  for (const figure of Figure.all) if (figure.make) Plotly.relayout(figure.picture, { width: null, autosize: true });
  setTheme(before ?? "light");
});

document.getElementById("copy").addEventListener("click", async () => {
  const code = document.getElementById("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    announce("The code is copied.");
  } catch {  // where a page from the disk may not, the text is marked instead
    getSelection().selectAllChildren(code);
    announce("The code is marked; copy it with the keyboard.");
  }
});

const content = JSON.parse(document.getElementById("data").textContent);
const tasks = [];
let scatter = null;
if (content.samples) tasks.push(() => { scatter = new Scatter(document.getElementById("scatter"), content.samples); });
for (const host of document.querySelectorAll("[data-panel]")) {
  const name = host.dataset.panel;
  tasks.push(() => new PanelView(host, name, content.panels[name]));
}

// With a pause after each, in which the browser shows what is there and answers the user.
function work() {
  const task = tasks.shift();
  if (task) task();
  if (tasks.length) setTimeout(work, 20);
  else document.documentElement.dataset.ready = "yes";
}
work();
