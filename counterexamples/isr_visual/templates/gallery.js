// The gallery: every trace of the file with a picture of how it ends.

function gallery(traces, open) {
  const broken = traces.every((t) => t.about.verdict === "VIOLATED"), shortest = traces.every((t) => t.about.minimality.includes("no shorter"));
  const about = broken && shortest ? "Each is the shortest behaviour that breaks a promise. Open one to walk through it." : "Open one to walk through it.";
  return h("main", { class: "gallery" }, h("header", { class: "gallery-head" }, h("p", { class: "eyebrow" }, "insync"), h("h1", {}, plural(traces.length, broken ? "counterexample" : "trace")),
    h("p", { class: "quiet" }, about)),
  h("ul", { class: "cards" }, traces.map((trace, n) => {
    const about = trace.about;
    return h("li", {}, h("article", { class: "thumb" },
      h("h2", {}, button(trace.title, { class: "open", onclick: () => open(n) })),
      h("p", { class: "quiet" }, [about.design, about.property, plural(trace.last, "step")].filter(Boolean).join("  ·  ")),
      h("div", { class: "picture", "aria-hidden": "true" }, sceneAt(trace, trace.last, 760, true)),
      about.case ? h("div", {}, prose(about.case.result)) : null));
  })));
}
