// Making elements: data goes in as text only, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const button = (text, attributes, ...more) => h("button", { type: "button", ...attributes }, text, ...more);

const plural = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;
const words = (name) => name.replaceAll("_", " ");

/** Prose with `code` in backquotes and paragraphs. */
function prose(text) {
  return text.split(/\n\s*\n/).map((paragraph) =>
    h("p", {}, paragraph.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part.replaceAll("\n", " ")))));
}

const KEYWORDS = new Set("and as assert class def else for from if import in is lambda not or return while with yield None True False".split(" "));

/** A line of Python as spans; enough of a lexer to make code readable. `state.open`: inside a docstring. */
function pythonLine(line, state) {
  const out = [];
  let rest = line;
  const put = (n, kind) => {
    out.push(kind ? h("span", { class: kind }, rest.slice(0, n)) : rest.slice(0, n));
    rest = rest.slice(n);
  };
  while (rest) {
    if (state.open) {
      const end = rest.indexOf('"""');
      state.open = end < 0;
      put(end < 0 ? rest.length : end + 3, "py-doc");
      continue;
    }
    const doc = rest.startsWith('"""');
    const found = /^(\s+|#.*|"[^"]*"|'[^']*'|@\w+|\w+|[^\s\w"'#@]+|.)/.exec(rest)[0];
    if (doc) {
      const end = rest.indexOf('"""', 3);
      state.open = end < 0;
      put(end < 0 ? rest.length : end + 3, "py-doc");
    } else if (found.startsWith("#")) put(found.length, "py-doc");
    else if (/^["']/.test(found)) put(found.length, "py-text");
    else if (found.startsWith("@") || KEYWORDS.has(found)) put(found.length, "py-key");
    else if (found === "new" || found === "old") put(found.length, "py-state");
    else put(found.length, "");
  }
  return out;
}
