// Taking something along: the scene as SVG, the trace as ITF, diagrams as text, a link, a printed sheet.

const STYLED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "text-decoration"];

/** The picture with its looks written into it, so that it stands alone. */
function svgText(svg, background) {
  const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((node, i) => {
    const looks = getComputedStyle(node);
    for (const name of STYLED) if (!(node.tagName === "svg")) to[i].setAttribute(name, to[i].getAttribute(name)?.startsWith("url(") ? to[i].getAttribute(name) : looks.getPropertyValue(name));
    to[i].removeAttribute("class");
  });
  copy.setAttribute("xmlns", SVG);
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: background }));
  return new XMLSerializer().serializeToString(copy);
}

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = h("a", { href: url, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** The steps worth a place on paper: all of a short trace, of a long one those that a client would notice. */
function stepsForPaper(trace) {
  const all = Array.from({ length: trace.last + 1 }, (_, i) => i);
  return all.length <= 24 ? all : all.filter((i) => i === 0 || i === trace.last || trace.eventful(i)).slice(-60);
}

function sceneAt(trace, i, width, small = false) {
  const before = i ? trace.values(i - 1) : null, changes = i ? trace.step(i).changes : [];
  const options = { before, changes, cells: longestLog(trace), width, small };
  return new Scene(trace.about, trace.values(i), options).draw() || genericScene(trace.values(i), changes);
}

/** The contact sheet: every step with its picture and its words. */
function contactSheet(trace) {
  return h("ol", { class: "sheet" }, stepsForPaper(trace).map((i) => {
    const step = trace.step(i);
    return h("li", {}, h("h3", {}, `T${i}  ${step ? words(step.action) || plural(step.changes.length, "change") : "start"}`),
      step && step.says ? h("p", {}, step.says) : null, sceneAt(trace, i, 760, true),
      step ? h("p", { class: "sheet-changes" }, step.changes.slice(0, 8).map((c) => h("code", {}, c.before && c.after ? `${c.path}: ${c.before} → ${c.after}` : c.after ? `${c.path} + ${c.after}` : `${c.path} − ${c.before}`))) : null,
      trace.about.lost[i].map((line) => h("p", { class: "loss" }, line)));
  }));
}
