// The head of the page, and the answer in three parts: what is lost, which step did it, which rule would have stopped it.

function heading(app) {
  const { about } = app.trace;
  const item = (text, act) => h("li", {}, button(text, { class: "menu-item", onclick: () => { act(); menu.open = false; } }));
  const menu = h("details", { class: "menu" }, h("summary", { class: "nav wide" }, "Export"), h("ul", {},
    item("Scene as SVG", () => app.saveScene()), item("Trace as ITF", () => app.saveItf()), item("Link to this step", () => app.copyLink()),
    about.mermaid ? item("Mermaid diagram", () => save(`${about.name}.mmd`, "text/plain", about.mermaid)) : null,
    about.plantuml ? item("PlantUML diagram", () => save(`${about.name}.puml`, "text/plain", about.plantuml)) : null,
    item("Contact sheet, to print", () => window.print())));
  const facts = [about.design ? h("span", {}, "design ", h("b", {}, about.design)) : null, about.property ? h("span", {}, "promise ", h("b", {}, about.property)) : null,
    h("span", {}, plural(app.trace.last, "step")), about.model_hash ? h("span", {}, "model ", h("code", {}, about.model_hash)) : null,
    about.case && about.case.tracker.length ? h("span", {}, about.case.tracker.join(", ")) : null];
  return h("header", { class: "top" },
    h("div", { class: "titles" }, h("p", { class: "eyebrow" }, about.verdict ? h("span", { class: `verdict ${about.verdict.toLowerCase()}` }, about.verdict) : "trace"), h("h1", {}, app.trace.title), h("p", { class: "facts" }, facts)),
    h("div", { class: "top-tools" }, app.traces.length > 1 ? button("All traces", { class: "nav wide", onclick: () => app.openGallery() }) : null,
      menu, button(s("svg", { viewBox: "0 0 16 16", width: 15, height: 15, "aria-hidden": "true" }, s("path", { class: "icon", d: "M8 1a7 7 0 100 14A7 7 0 008 1zm0 2v10A5 5 0 018 3z" })), { class: "nav", "aria-label": "Light or dark", title: "Light or dark (t)", onclick: () => app.turnTheme() }), button("?", { class: "nav", "aria-label": "Keys", title: "Keys (?)", onclick: () => app.controls.help.showModal() })));
}

/** Null for a trace that is about no promise. */
function answer(trace, go) {
  const { about } = trace, at = brokenAt(trace);
  if (!about.property) return null;
  const to = (i) => button(`T${i}`, { class: "link", onclick: () => go(i) });
  const end = about.lost[trace.last].filter((l) => l.startsWith("LOST")).map((l) => l.replace("LOST: ", ""));
  const first = (text) => { const line = text.replaceAll("\n", " "); return line; };
  const what = about.case ? prose(about.case.result) : [h("p", {}, end.length ? `${end.join("; ")}.` : about.promise.split("\n\n")[0])];
  const needed = about.steps.filter((x) => x.role === "needed").map((x) => x.step);
  const drops = dropped(trace);
  const which = [
    at !== null ? h("p", {}, to(at), ` ${words(trace.step(at)?.action ?? "the first state")}: from here on `, h("code", {}, about.property), about.kind.startsWith("sometimes") ? " has happened." : " is broken.") : null,
    about.loop !== null ? h("p", {}, forEver(trace, to)) : null,
    drops.length ? h("p", {}, "Copies go at ", drops.map((d, k) => [k ? ", " : "", to(d.step), ` (${d.replica} drops record ${d.record})`]), ".") : null,
    needed.length ? h("p", { class: "quiet" }, "Decisive: ", needed.map((i, k) => [k ? ", " : "", to(i)]), ". ", about.minimality ? `${first(about.minimality)}.` : "") : about.minimality ? h("p", { class: "quiet" }, `${about.minimality}.`) : null,
  ];
  return h("section", { class: "answer", "aria-label": "In short" },
    h("div", {}, h("h2", {}, about.kind.startsWith("sometimes") ? "What happens" : "What goes wrong"), what),
    h("div", {}, h("h2", {}, "Which step did it"), which),
    h("div", {}, h("h2", {}, "Which rule would have stopped it"), rule(trace, to)));
}

/** How a behaviour goes on that never ends, which is what breaks a promise about the future. */
function forEver(trace, to) {
  const { about: { loop, kind }, last } = trace, so = kind === "eventually" ? ", and what was promised never comes." : ".";
  if (loop === last) return [to(last), " for ever: nothing happens any more", so];
  if (same(trace.values(loop), trace.values(last))) return [to(last), " is ", to(loop), " again: what happened since then happens for ever", so];
  return ["Then ", to(loop), " again, for ever", so];
}

/** Where a lost record was dropped: the steps after which a log has it no more. */
function dropped(trace) {
  if (!trace.drawable || trace.last > 200) return [];
  const end = trace.rolesAt(trace.last), found = [];
  const gone = new Set(end.lost().filter((l) => l.startsWith("LOST")).map((l) => /record (\S+)/.exec(l)[1]));
  for (let i = 1; i <= trace.last; i++) {
    const old = trace.rolesAt(i - 1), now = trace.rolesAt(i);
    for (const r of now.replicas) for (const record of old.log(r)) if (gone.has(record) && !now.log(r).includes(record)) found.push({ step: i, replica: r, record });
  }
  return found;
}

function rule(trace, to) {
  const { against, case: known } = trace.about, parts = [];
  if (against && against.parts !== null) {
    const turn = against.turns[against.parts], step = trace.step(against.parts);
    parts.push(h("p", {}, h("b", {}, against.label), turn.refused ? " refuses " : " differs at ", to(against.parts), ` ${words(step.action)}${turn.refused ? ": " : ": there "}`,
      turn.refused ? refusal(turn.refused) : [difference(telling(trace, turn.apart)), "."]));
  }
  const refused = against ? against.turns.findIndex((t) => t.refused) : -1;
  if (refused > against?.parts) parts.push(h("p", {}, "It refuses ", to(refused), ` ${words(trace.step(refused).action)}: `, refusal(against.turns[refused].refused)));
  if (known && known.fix) {
    const [short, ...more] = prose(known.fix);
    parts.push(short, more.length ? h("details", {}, h("summary", {}, "More"), more) : null);
  }
  if (!parts.length) parts.push(known ? h("p", {}, "None: this is what the setting means.") : h("p", { class: "quiet" }, "No other design was given to compare with."));
  return parts;
}

/** Of the cells that differ one that a reader knows from the scene, if there is one. */
function telling(trace, apart) {
  const names = ["log", "high watermark", "committed", "leader", "isr"].flatMap((role) => trace.about.roles.scene[role]);
  return names.map((name) => apart.find((c) => c.path.split("[")[0] === name)).find(Boolean) || apart[0];
}

function difference({ path, before, after }) {
  const [where, old, now] = [path, before, after].map((text) => h("code", {}, text));
  return [where, ...(before && after ? [" is ", now, ", not ", old] : after ? [" also has ", now] : [" does not have ", old])];
}

/** The innermost condition that fails, with its values. */
function refusal(reason) {
  const inner = reason.because.find((part) => !part.holds);
  if (inner) return refusal(inner);
  const values = Object.entries(reason.values).map(([name, value]) => `${name} = ${value}`).join(", ");
  return [h("code", {}, reason.text), values ? [" fails, for ", h("code", {}, values)] : ""];
}

function legend(reads) {
  return h("ul", { class: "legend" }, [["striped", "in this log only"], ["fine", "copied to another log"], ["solid", "known here to be committed"], ["ticked", "acknowledged to its producer"],
    ...(reads ? [["seen-mark", "read by a consumer"]] : []), ["missing", "promised, but missing"], ["ringed", "changed in this step"]]
    .map(([kind, text]) => h("li", {}, h("i", { class: `key ${kind}`, "aria-hidden": "true" }), text)));
}
