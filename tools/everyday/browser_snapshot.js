// A page as text: what can be seen, in reading order, with a number for everything that can be operated.
() => {
  const MARK = "data-rl-cli-ref";
  const SKIPPED = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "SVG", "OBJECT"]);
  const OPERATED = "a[href], button, input:not([type=hidden]), textarea, select, summary, [contenteditable=''], " +
    "[contenteditable=true], [onclick], [role=button], [role=link], [role=checkbox], [role=tab], [role=menuitem], " +
    "[role=option], [role=switch], [role=textbox], [role=combobox]";
  const MOST_NODES = 20000, MOST_CHARACTERS = 1000000, DEEPEST = 500, LAST = performance.now() + 3000;
  const lines = [], operated = [];
  let line = "", nodes = 0, characters = 0, full = false, cut = false;

  const squeeze = text => text.slice(0, MOST_CHARACTERS).replace(/\s+/g, " ").trim();
  const add = text => { characters += text.length; if (text) line += (line && !line.endsWith(" ") ? " " : "") + text; };
  const breakLine = () => { if (line.trim()) lines.push(line.trim()); line = ""; };
  const nameOf = element => squeeze(
    element.getAttribute("aria-label") || (element.labels && element.labels[0] && element.labels[0].innerText) ||
    element.placeholder || (element.matches("input, textarea, select") ? element.name : element.innerText) ||
    element.title || element.alt || (element.querySelector("img[alt]") || {}).alt || "").slice(0, 200);

  const describe = element => {
    const tag = element.tagName.toLowerCase(), type = (element.type || "").toLowerCase();
    const states = [];
    let role = element.getAttribute("role") ||
      { a: "link", button: "button", textarea: "textbox", select: "combobox", summary: "button" }[tag] || "control";
    if (tag === "input") {
      role = { checkbox: "checkbox", radio: "radio", submit: "button", button: "button", reset: "button",
        image: "button", file: "file", range: "slider" }[type] || "textbox";
      if (role === "button") return `${role} ${JSON.stringify(element.value || nameOf(element) || type)}`;
      if (role === "checkbox" || role === "radio") states.push(element.checked ? "checked" : "not checked");
      else states.push("value=" + JSON.stringify(
        (type === "password" ? "*".repeat(element.value.length) : element.value).slice(0, 500)));
    } else if (tag === "textarea") states.push("value=" + JSON.stringify(element.value.slice(0, 500)));
    else if (tag === "select") {
      const options = [...element.options].slice(0, 50).map(option => option.label);
      states.push("selected=" + JSON.stringify(element.selectedOptions[0] ? element.selectedOptions[0].label : ""));
      states.push("options=" + JSON.stringify(options));
    } else if (tag === "a") states.push("-> " + element.href.slice(0, 300));
    if (element.disabled) states.push("disabled");
    return [role, JSON.stringify(nameOf(element)), ...states].join(" ");
  };

  const walk = (node, depth) => {
    if (++nodes > MOST_NODES || characters > MOST_CHARACTERS || performance.now() > LAST) full = true;
    cut = cut || full || depth > DEEPEST;
    if (full || depth > DEEPEST) return;
    if (node.nodeType === Node.TEXT_NODE) return add(squeeze(node.data));
    if (node.nodeType !== Node.ELEMENT_NODE || SKIPPED.has(node.tagName.toUpperCase())) return;
    const style = getComputedStyle(node);
    if (style.display === "none" || style.visibility === "hidden" || node.getAttribute("aria-hidden") === "true") return;
    const block = !style.display.startsWith("inline") && style.display !== "contents";
    if (block || node.tagName === "BR") breakLine();
    if (node.matches(OPERATED)) {
      operated.push(node);
      add(`[${operated.length}] ${describe(node)}`);
    } else if (node.tagName === "IMG") add(node.alt ? `(image: ${squeeze(node.alt)})` : "");
    else if (node.tagName === "IFRAME") add("(a frame)");
    else {
      if (/^H[1-6]$/.test(node.tagName)) add("#".repeat(Number(node.tagName[1])));
      else if (node.tagName === "LI") add("-");
      for (const child of (node.shadowRoot || node).childNodes) walk(child, depth + 1);
    }
    if (block) breakLine();
    else if (node.tagName === "TD" || node.tagName === "TH") add("|");
  };

  document.querySelectorAll(`[${MARK}]`).forEach(element => element.removeAttribute(MARK));
  if (document.body) walk(document.body, 0);
  breakLine();
  operated.forEach((element, at) => element.setAttribute(MARK, at + 1));
  if (cut) lines.push("(the page is too large: not all of it is shown)");
  return lines.join("\n");
}
