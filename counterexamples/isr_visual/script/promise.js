// Why a promise holds or does not.

/**
 * What the promise says in words, then the conjunct with its witness, then its source.
 * @type {(trace: Trace, view: View) => Content}
 */
function promiseBox(trace, view) {
  const p = trace.about.properties.find((x) => x.name === view.property);
  if (!p || view.trail.length) return null;
  const { at } = view;
  const k = p.reasons[at];
  const holds = p.holds[at];
  const seeks = p.kind.startsWith("sometimes");
  const verdicts = seeks ? ["happens", "does not happen"] : ["holds", "is broken"];
  const word = holds === null ? "says nothing of the first state" : verdicts[holds ? 0 : 1];
  const bad = holds === false && !seeks;
  return [
    h("p", { class: `why-head${bad ? " bad" : ""}` }, h("b", {}, p.name), ` ${word} at T${at}.`),
    h("p", { class: "quiet" }, p.about.split("\n\n")[0]),
    k === null || k === undefined
      ? null
      : h(
          "details",
          { open: holds === false, class: "why" },
          h("summary", {}, "Which conjunct, which witness"),
          h("ul", { class: "reasons", "data-reason": k }, reasonTree(trace.about.reasons[k])),
        ),
    p.source.text ? h("details", {}, h("summary", {}, "The promise in the model"), codeBlock(p.source)) : null,
  ];
}
