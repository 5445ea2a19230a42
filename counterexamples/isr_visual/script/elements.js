// Making elements: data goes in as text only, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {Element} T
 * @param {T} node
 * @param {Attributes | null} attributes
 * @param {Content[]} children
 * @returns {T}
 */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...flat(children));
  return node;
}

/**
 * What is to be shown, in one list.
 * @type {(content: Content) => (Node | string)[]}
 */
const flat = (content) =>
  Array.isArray(content)
    ? content.flatMap(flat)
    : content === null || content === undefined || content === false
      ? []
      : [typeof content === "number" ? String(content) : content];

/**
 * An HTML element.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes | null} [attributes]
 * @param {Content[]} children
 */
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes ?? null, children);

/**
 * An SVG element.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes | null} attributes
 * @param {Content[]} children
 * @returns {SVGElementTagNameMap[K]}
 */
const s = (tag, attributes, ...children) =>
  fill(/** @type {SVGElementTagNameMap[K]} */ (document.createElementNS(SVG, tag)), attributes, children);

/**
 * The element of a drawing that is data.
 * @type {(drawn: Shape) => SVGElement}
 */
const drawnAs = (drawn) =>
  fill(
    /** @type {SVGElement} */ (document.createElementNS(SVG, drawn.tag)),
    drawn.attributes,
    drawn.parts.map((part) => (part === null || typeof part === "string" ? part : drawnAs(part))),
  );

/**
 * @param {string} text
 * @param {Attributes} attributes
 * @param {Content[]} more
 */
const button = (text, attributes, ...more) => h("button", { type: "button", ...attributes }, text, ...more);

/** @type {(n: number, thing: string) => string} */
const plural = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;
/** @type {(name: string) => string} */
const words = (name) => name.replaceAll("_", " ");
/** @type {(id: string) => HTMLElement} */
const byId = (id) => {
  const node = document.getElementById(id);
  if (!node) throw new Error(`the page has no ${id}`);
  return node;
};

/**
 * Prose with `code` in backquotes and paragraphs.
 * @type {(text: string) => HTMLElement[]}
 */
function prose(text) {
  return text.split(/\n\s*\n/).map((paragraph) =>
    h(
      "p",
      {},
      paragraph.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part.replaceAll("\n", " "))),
    ),
  );
}

const KEYWORDS = new Set(
  "and as assert class def else for from if import in is lambda not or return while with yield None True False".split(
    " ",
  ),
);

/**
 * A line of Python as spans; enough of a lexer to make code readable. `state.open`: inside a docstring.
 * @type {(line: string, state: { open: boolean }) => Content[]}
 */
function pythonLine(line, state) {
  /** @type {Content[]} */
  const out = [];
  let rest = line;
  /** @type {(n: number, kind: string) => void} */
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
    const found = /^(\s+|#.*|"[^"]*"|'[^']*'|@\w+|\w+|[^\s\w"'#@]+|.)/.exec(rest)?.[0] ?? rest;
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
