// Taking something along: the scene as SVG, the trace as ITF, diagrams as text, a link, a printed sheet.

const STYLE_NAMES = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "text-decoration",
];

/**
 * The picture with its looks written into it, so that it stands alone.
 * @type {(svg: SVGElement, background: string) => string}
 */
function svgText(svg, background) {
  const copy = /** @type {SVGElement} */ (svg.cloneNode(true)),
    from = [svg, ...svg.querySelectorAll("*")],
    to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((node, i) => {
    const looks = getComputedStyle(node);
    for (const name of node === svg ? [] : STYLE_NAMES) {
      const pattern = to[i].getAttribute(name)?.startsWith("url(");
      if (!pattern) to[i].setAttribute(name, looks.getPropertyValue(name));
    }
    to[i].removeAttribute("class");
  });
  copy.setAttribute("xmlns", SVG);
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: background }));
  return new XMLSerializer().serializeToString(copy);
}

/** @type {(name: string, type: string, text: string) => void} */
function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = h("a", { href: url, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/**
 * The steps worth a place on paper: all of a short trace, of a long one those that a client would notice.
 * @type {(trace: Trace) => number[]}
 */
function stepsForPaper(trace) {
  const all = Array.from({ length: trace.last + 1 }, (_, i) => i);
  return all.length <= 24 ? all : all.filter((i) => i === 0 || i === trace.last || trace.eventful(i)).slice(-60);
}

/**
 * The contact sheet: every step with its picture and its words.
 * @type {(trace: Trace) => HTMLElement}
 */
function contactSheet(trace) {
  return h(
    "ol",
    { class: "sheet" },
    stepsForPaper(trace).map((i) => {
      const step = trace.step(i);
      return h(
        "li",
        {},
        h("h3", {}, `T${i}  ${step ? words(step.action) || plural(step.changes.length, "change") : "start"}`),
        step && step.says ? h("p", {}, step.says) : null,
        trace.picture(i, 760),
        step
          ? h(
              "p",
              { class: "sheet-changes" },
              step.changes
                .slice(0, 8)
                .map((c) =>
                  h(
                    "code",
                    {},
                    c.before && c.after
                      ? `${c.path}: ${c.before} → ${c.after}`
                      : c.after
                        ? `${c.path} + ${c.after}`
                        : `${c.path} − ${c.before}`,
                  ),
                ),
            )
          : null,
        trace.about.lost[i].map((line) => h("p", { class: "loss" }, line)),
      );
    }),
  );
}

/** @type {(trace: Trace) => void} */
const saveItf = (trace) => save(`${trace.about.name}.itf.json`, "application/json", trace.itfText);

/**
 * The picture as it stands in the page; the lanes where a trace has none.
 * @type {(trace: Trace, at: number) => void}
 */
function saveScene(trace, at) {
  /** @type {SVGElement | null} */
  const svg = document.querySelector("#scene svg.scene") ?? document.querySelector("#lanes svg");
  if (!svg) return;
  const ground = getComputedStyle(byId("scene")).backgroundColor;
  save(`${trace.about.name}-T${at}.svg`, "image/svg+xml", svgText(svg, ground));
}
