// Search and filters over the rows of the page; every text goes in by textContent.
"use strict";
const FOLDED = 100;
const at = (id) => document.getElementById(id);

function made(tag, kind, text) {
  const node = document.createElement(tag);
  node.className = kind;
  node.textContent = text;
  return node;
}

function clipped(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > FOLDED ? line.slice(0, FOLDED) + "…" : line;
}

function entryNode(entry) {
  const folds = entry.tool !== "";
  const node = made(folds ? "details" : "div", "entry " + entry.role, "");
  const head = folds ? `${entry.role} ${entry.tool}: ${clipped(entry.text)}` : entry.role;
  node.append(made(folds ? "summary" : "div", "role", head), made("pre", "", entry.text));
  return node;
}

function trajectory(data) {
  const asked = data.entries.find((entry) => entry.role === "user");
  const node = made("details", "trajectory", "");
  const head = made("summary", "", `${data.number}. ${clipped(asked ? asked.text : "")} `);
  head.append(made("span", "facts", data.facts.map(([name, value]) => `${name} ${value}`).join(" · ")));
  node.append(head);
  node.addEventListener("toggle", () => {
    if (node.open && node.childElementCount === 1) {
      node.append(...data.entries.map(entryNode));
      fold(node);
    }
  });
  return node;
}

function fold(node) {
  const open = at("unfold").getAttribute("aria-pressed") === "true";
  for (const entry of node.querySelectorAll("details.entry")) entry.open = open;
}

function choices(id, names) {
  for (const name of [...new Set(names)].sort()) at(id).append(new Option(name, name));
}

const rows = [...document.querySelectorAll("script.row")].map((element) => {
  const data = JSON.parse(element.textContent);
  element.remove();
  const texts = [...data.facts.map((fact) => fact[1]), ...data.entries.map((entry) => `${entry.tool} ${entry.text}`)];
  const tools = new Set(data.entries.filter((entry) => entry.role === "call").map((entry) => entry.tool));
  return { data, tools, text: texts.join("\n").toLowerCase(), node: trajectory(data) };
});

function fits(row) {
  const { completed, marks, score } = row.data;
  const wanted = at("search").value.trim().toLowerCase();
  const least = at("score").value;
  return (
    row.text.includes(wanted) &&
    (at("completed").value === "" || String(completed) === at("completed").value) &&
    (at("mark").value === "" || marks.includes(at("mark").value)) &&
    (at("tool").value === "" || row.tools.has(at("tool").value)) &&
    (least === "" || (typeof score === "number" && score >= Number(least)))
  );
}

function filter() {
  let shown = 0;
  for (const row of rows) {
    row.node.hidden = !fits(row);
    if (!row.node.hidden) shown += 1;
  }
  at("count").textContent = `${shown} of ${rows.length} trajectories`;
}

choices("mark", rows.flatMap((row) => row.data.marks));
choices("tool", rows.flatMap((row) => [...row.tools]));
for (const row of rows) at("list").append(row.node);
at("filters").addEventListener("input", filter);
at("filters").addEventListener("submit", (event) => event.preventDefault());
at("unfold").addEventListener("click", (event) => {
  const pressed = event.target.getAttribute("aria-pressed") !== "true";
  event.target.setAttribute("aria-pressed", String(pressed));
  for (const row of rows) fold(row.node);
});
if (rows.length === 1) rows[0].node.open = true;
filter();
