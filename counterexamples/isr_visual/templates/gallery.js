// The gallery: every trace of the file with a picture of how it ends, and of each the control: how the same schedule ends
// under the design that mends it.

const GROUPS = [["counterexamples", "Counterexamples", (t) => t.about.verdict === "VIOLATED"], ["witnesses", "Witnesses", (t) => t.about.kind.startsWith("sometimes")],
  ["behaviours", "Behaviours", () => true]];

function gallery(traces, open) {
  const broken = traces.every((t) => t.about.verdict === "VIOLATED"), shortest = traces.every((t) => t.about.minimality.includes("no shorter"));
  const about = broken && shortest ? "Each is the shortest behaviour that breaks a promise. Open one to walk through it." : "Open one to walk through it.";
  const group = (t) => GROUPS.find(([, , fits]) => fits(t))[0];
  const parts = GROUPS.map(([id, title]) => [id, title, traces.filter((t) => group(t) === id).map((t) => thumb(t, () => open(traces.indexOf(t))))]);
  const controls = traces.filter((t) => t.about.against && t.drawable).map((t) => control(t, () => openControl(t, traces.indexOf(t), open)));
  const shown = [...parts, ["controls", "Controls", controls, "The same schedules under designs that mend them: what breaks a promise above must be seen to keep it here, or the picture above would prove nothing."]].filter(([, , cards]) => cards.length);
  return h("main", { class: "gallery" }, h("header", { class: "gallery-head" }, h("p", { class: "eyebrow" }, "insync"), h("h1", {}, plural(traces.length, broken ? "counterexample" : "trace")),
    h("p", { class: "quiet" }, about), shown.length > 1 ? h("nav", { class: "groups", "aria-label": "Groups" }, shown.map(([id, title, cards]) => button(`${title}, ${cards.length}`, { onclick: () => document.getElementById(id).scrollIntoView() }))) : null),
  shown.map(([id, title, cards, says]) => h("section", { id, tabindex: "-1", "aria-label": title }, shown.length > 1 ? h("h2", { class: "group" }, title) : null, says ? h("p", { class: "quiet" }, says) : null, h("ul", { class: "cards" }, cards.map((c) => h("li", {}, c))))));
}

function thumb(trace, open) {
  const { about } = trace;
  return h("article", { class: "thumb" }, h("h3", {}, button(trace.title, { class: "open", onclick: open })),
    h("p", { class: "quiet" }, [about.design, about.property, plural(trace.last, "step")].filter(Boolean).join("  ·  ")),
    h("div", { class: "picture", "aria-hidden": "true" }, sceneAt(trace, trace.last, 760, true)),
    about.case ? h("div", {}, prose(about.case.result)) : null);
}

/** How the schedule of a trace ends under the other design, which step it refuses, and whether the promise is kept. */
function control(trace, open) {
  const { about, about: { against } } = trace, refused = against.turns.findIndex((t) => t.refused);
  const fails = about.property && against.turns.some((t) => t.broken.includes(about.property));
  const parts = refused > 0 ? `It refuses T${refused}, ${words(trace.step(refused).action)}.` : against.parts === null ? "It does the same." : `It differs from T${against.parts} on.`;
  const drawn = new Scene(about, trace.otherValues[trace.last], { cells: longestLog(trace), width: 760, small: true }).draw();
  return h("article", { class: "thumb control" }, h("h3", {}, button(`${against.label}: ${trace.title}`, { class: "open", onclick: open })),
    h("p", { class: fails ? "broken" : "kept" }, about.property ? [h("code", {}, about.property), fails ? " is broken there, too." : " is kept to the end."] : null),
    h("div", { class: "picture", "aria-hidden": "true" }, drawn), h("p", {}, parts));
}

function openControl(trace, n, open) {
  open(n, trace.last);
  document.getElementById("against").scrollIntoView();
}
