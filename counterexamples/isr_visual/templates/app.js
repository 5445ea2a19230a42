// The page: one step index, all views drawn from it, keys, links.

const KEYS = [
  ["→ or n", "next step"], ["← or p", "step before"], ["Home, End", "first, last step"], ["e, E", "next, previous event"], ["b", "to the step that breaks the promise"],
  ["u", "next step that the search finds"], ["1 2 3", "to scene, lanes, table"], ["w", "to what else could happen"], ["Esc", "back to the trace"],
  ["c", "only what changed"], ["/", "search"], ["a", "ask before revealing"], ["s", "save the scene as SVG"], ["i", "save the trace as ITF"], ["l", "copy a link"], ["t", "light or dark"], ["g", "gallery"], ["?", "these keys"],
];

class App {
  constructor(root) {
    this.root = root;
    const read = (kind) => [...document.querySelectorAll(`script.${kind}`)].map((node) => JSON.parse(node.textContent));
    const texts = read("itf");
    this.traces = read("document").map((about, n) => new Trace(about, texts[n]));
    this.view = { at: 0, trail: [], property: null, hidden: new Set(), pinned: new Set(), changedOnly: false, filter: "", allProperties: false,
      allWays: false, watches: [], asking: false, asked: null, width: 760 };
    this.live = document.getElementById("live");
    window.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("hashchange", (event) => this.readLink(new URL(event.newURL).hash));  // by now the address may be another
    window.addEventListener("beforeprint", () => this.trace && this.sheet.replaceChildren(contactSheet(this.trace)));
    window.addEventListener("resize", () => this.resized());
    if (!this.readLink()) this.traces.length > 1 ? this.openGallery() : this.open(0);
  }

  // where the reader is

  open(n, at = 0) {
    this.trace = this.traces[n];
    const { about } = this.trace;
    Object.assign(this.view, { at, trail: [], property: about.property || null, asked: null, allWays: false, hidden: new Set(), pinned: new Set() });
    this.build();
    this.draw();
  }

  openGallery() {
    this.trace = null;
    this.root.replaceChildren(gallery(this.traces, (n, at) => { this.open(n, at); scrollTo(0, 0); }));
  }

  go(step) {
    if (!this.trace) return;
    const to = Math.max(0, Math.min(step, this.trace.last));
    const asks = this.view.asking && to === this.view.at + 1 && !this.view.trail.length && this.view.asked !== to && this.trace.eventful(to);
    if (asks) {
      this.view.asked = to;
      this.say(questionAbout(this.trace, to));
      return this.draw();
    }
    Object.assign(this.view, { at: to, trail: [], asked: null, allWays: false });
    this.draw();
    this.say(this.narration());
  }

  /** As long as a key is held or the scrubber moves: what is out of sight, and code that nobody could read, waits. */
  rush() {
    this.rushed = true;
    clearTimeout(this.calm);
    this.calm = setTimeout(() => { this.rushed = false; this.draw(); }, 140);
  }

  take(way) {
    this.view.trail = [...this.view.trail, way];
    this.view.allWays = false;
    this.draw();
    this.say(this.narration());
  }

  find(forward, test) {
    const steps = Array.from({ length: this.trace.last + 1 }, (_, i) => i);
    const ordered = forward ? steps.filter((i) => i > this.view.at) : steps.filter((i) => i < this.view.at).reverse();
    const found = ordered.find(test);
    if (found === undefined) this.say(forward ? "None after this step." : "None before this step.");
    else { this.view.asked = found; this.go(found); }
  }

  /** Everything about the state that is shown, on the trace or off it. */
  here() {
    const { trace } = this, { at, trail } = this.view;
    if (trail.length) return this.branched(trail);
    const step = trace.step(at), values = trace.values(at), before = at ? trace.values(at - 1) : null;
    const broken = trace.about.properties.filter((p) => !p.kind.startsWith("sometimes") && p.holds[at] === false).map((p) => p.name);
    return { branch: false, at, node: trace.nodeAt(at), values, before, changes: step ? step.changes : [], lost: trace.about.lost[at], broken,
      action: step?.action ?? "", parameters: step?.parameters ?? "", actor: step?.actor ?? "", peer: step?.peer ?? "", says: step?.says ?? "", role: step?.role ?? "" };
  }

  branched(trail) {
    let node = this.trace.nodeAt(this.view.at), way = null, before = null;
    for (const k of trail) {
      before = this.trace.nodeValues(node);
      way = this.trace.about.nodes[node].ways[k];
      node = way.to;
    }
    const values = this.trace.nodeValues(node), roles = new Roles(this.trace.about, values);
    return { branch: true, at: this.view.at, from: this.view.at, off: trail.length, node, values, before, changes: changesBetween(before, values), lost: roles.lost(), broken: way.broken,
      action: way.action, parameters: way.parameters, actor: "", peer: "", says: "", role: "" };
  }

  narration() {
    const { here } = this.view;
    return [`${here.branch ? "Off the trace" : `T${here.at}`}: ${words(here.action) || "start"}.`, here.says, ...here.lost].filter(Boolean).join(" ");
  }

  say(text) { this.live.textContent = text; }

  // links

  link() {
    const { about } = this.trace;
    const parts = { t: this.view.at, ...(this.view.trail.length ? { way: this.view.trail.join(".") } : {}), ...(this.view.property ? { p: this.view.property } : {}),
      model: about.model_hash || "none", trace: about.digest.slice(0, 12) };
    return `#${new URLSearchParams(parts)}`;
  }

  /** Whether there was a link to follow; what does not fit is said in a banner. */
  readLink(hash = location.hash) {
    const given = new URLSearchParams(hash.slice(1));
    if (!given.has("t")) return false;
    const named = this.traces.findIndex((t) => t.about.digest.startsWith(given.get("trace") || "-"));
    const n = Math.max(0, named), { about } = this.traces[n];
    this.linked = { model: given.get("model"), trace: given.get("trace"), known: named >= 0 };
    const step = Number(given.get("t")), fits = Number.isInteger(step) && step >= 0 && step <= this.traces[n].last;
    this.linked.beyond = fits ? null : given.get("t");
    if (given.get("p") && about.properties.some((p) => p.name === given.get("p"))) this.asksFor = given.get("p");
    this.open(n, fits ? step : 0);
    if (this.asksFor) this.view.property = this.asksFor;
    this.asksFor = null;
    this.followWay(given.get("way"));
    this.draw();
    return true;
  }

  followWay(text) {
    let node = this.trace.nodeAt(this.view.at);
    for (const k of (text || "").split(".").filter(Boolean).map(Number)) {
      const way = node === null ? undefined : (this.trace.about.nodes[node].ways || [])[k];
      if (!way || way.to === null) return;
      this.view.trail.push(k);
      node = way.to;
    }
  }

  banners() {
    const { about, intact } = this.trace, found = [];
    if (!intact) found.push("The states in this file are not those that it was made with: its checksum does not fit. Do not trust what it shows.");
    const hash = this.trace.itf["#meta"]?.model_hash ?? "";
    if (about.model_hash && hash !== about.model_hash) found.push(`The trace names model ${hash || "none"}, this page ${about.model_hash}. Do not trust what it shows.`);
    if (about.mismatch) found.push(`The model has changed since: ${about.mismatch}`);
    if (this.linked?.model && this.linked.model !== (about.model_hash || "none")) found.push(`The link was made for model ${this.linked.model}; this file is of model ${about.model_hash || "none"}.`);
    else if (this.linked?.trace && !this.linked.known) found.push("The link was made for another trace of this model; its steps need not be these.");
    if (this.linked?.beyond) found.push(`The link leads to step ${this.linked.beyond}, which this trace does not have.`);
    return found.map((text) => h("p", { class: "banner", role: "alert" }, text));
  }

  // drawing

  build() {
    const { about } = this.trace, section = (id, title, ...more) => h("section", { id, class: "panel", tabindex: "-1", "aria-label": title }, h("header", { class: "panel-head" }, h("h2", {}, title), more), (this[id] = h("div", { class: "panel-body" })));
    this.room = this.timelineKey = this.lanesKey = null;
    this.controls = new Controls(this);
    const main = h("main", {},
      (this.banner = h("div", { class: "banners" })), (this.answerBox = h("div")),
      this.controls.bar,
      h("div", { class: "stage" }, section("scene", this.trace.drawable ? "Scene" : "State"),
        h("section", { id: "step", class: "panel", "aria-label": "Step", tabindex: "-1" }, (this.step = h("div", { class: "panel-body" }))),
      h("section", { class: "panel steps", "aria-label": "Timeline" }, h("header", { class: "panel-head" }, h("h2", {}, "Timeline"), h("div", { class: "tools" }, this.controls.switches)),
        (this.timeline = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Timeline, one column per state" })), signs(this.trace), (this.reason = h("div", { class: "reason-box" })), this.controls.form)),
      h("div", { class: "pair" }, section("lanes", "Lanes"), section("variables", "Variables", this.controls.tableTools)),
      about.nodes.length ? section("whatif", "What else could happen here") : null,
      about.against ? section("against", `The same schedule under ${about.against.label}`) : null);
    this.sheet = h("div", { id: "sheet" });
    this.root.replaceChildren(heading(this), main, this.sheet, this.controls.help);
    this.answerBox.replaceChildren(...[answer(this.trace, (i) => this.go(i))].filter(Boolean));
  }

  draw() {
    if (!this.trace) return;
    const focus = this.rememberFocus(), { trace, view } = this;
    const waits = (box) => this.rushed && box && box.getBoundingClientRect().top > innerHeight;
    const later = new Set([this.lanes, this.variables, this.whatif, this.against].filter(waits));
    view.here = this.here();
    this.room ??= { scene: this.scene.clientWidth || 760, lanes: this.lanes.clientWidth || 760 };
    view.width = this.room.scene;
    const act = { go: (i) => this.go(i), take: (k) => this.take(k), back: () => this.go(view.at), allWays: () => { view.allWays = true; this.draw(); },
      pin: (n) => this.toggle(view.pinned, n), hide: (n) => this.toggle(view.hidden, n), showAll: () => { view.hidden.clear(); this.draw(); },
      unwatch: (text) => { view.watches = view.watches.filter((x) => x !== text); this.draw(); } };
    const put = (box, content) => box && box.replaceChildren(...[content].flat(Infinity).filter(Boolean));
    put(this.banner, this.banners());
    const timeline = new Timeline(trace, view, (i, property) => this.pick(i, property));
    if (timeline.key !== this.timelineKey) put(this.timeline, timeline.draw());
    this.timelineKey = timeline.key;
    timeline.mark(this.timeline.firstChild);
    put(this.reason, this.whyBox());
    put(this.scene, this.picture());
    put(this.step, this.question() || new StepPanel(trace, view, !this.rushed).draw());
    const lanes = new Lanes(trace, view.at, this.room.lanes, act.go);
    if (!later.has(this.lanes)) {
      if (lanes.key !== this.lanesKey) put(this.lanes, lanes.draw());
      this.lanesKey = lanes.key;
      lanes.mark(this.lanes.firstChild);
    }
    for (const [box, panel] of [[this.variables, VariableTable], [this.whatif, WhatIf], [this.against, Against]]) if (!later.has(box)) put(box, new panel(trace, view, act).draw());
    document.body.classList.toggle("off-trace", view.here.branch);
    this.controls.update();
    this.restoreFocus(focus);
    cancelAnimationFrame(this.later);
    this.later = requestAnimationFrame(() => this.showColumn());
    clearTimeout(this.addressing);  // a browser takes only so many new addresses per second
    this.addressing = setTimeout(() => this.trace && history.replaceState(null, "", this.link()), 200);
  }

  picture() {
    const { here } = this.view, options = { before: here.before, changes: here.changes, cells: longestLog(this.trace), width: this.view.width };
    const drawn = new Scene(this.trace.about, here.values, options).draw();
    const note = here.branch ? h("p", { class: "off" }, `What if: not the trace, but ${plural(here.off, "step")} off it. `, button("Back to the trace", { class: "link", onclick: () => this.go(this.view.at) })) : null;
    return [note, drawn || genericScene(here.values, here.changes), drawn ? legend("consumed" in here.values) : null];
  }

  question() {
    const { asked, at } = this.view;
    return asked === at + 1 && this.view.asking
      ? h("div", { class: "question" }, h("p", { class: "eyebrow" }, `before T${asked}`), h("h2", { class: "action-name" }, "What happens now?"), h("p", { class: "says" }, questionAbout(this.trace, asked)),
          button("Reveal", { class: "primary", onclick: () => this.go(asked) }))
      : null;
  }

  whyBox() {
    const p = this.trace.about.properties.find((x) => x.name === this.view.property);
    if (!p || this.view.trail.length) return null;
    const { at } = this.view, k = p.reasons[at], holds = p.holds[at];
    const word = holds === null ? "says nothing of the first state" : p.kind.startsWith("sometimes") ? (holds ? "happens" : "does not happen") : holds ? "holds" : "is broken";
    return [h("p", { class: `why-head ${holds === false && !p.kind.startsWith("sometimes") ? "bad" : ""}` }, h("b", {}, p.name), ` ${word} at T${at}. `, h("span", { class: "quiet" }, p.about.split("\n\n")[0])),
      k === null || k === undefined ? null : h("details", { open: holds === false, class: "why" }, h("summary", {}, "Which conjunct, which witness"), h("ul", { class: "reasons", "data-reason": k }, reasonTree(this.trace.about.reasons[k]))),
      p.source.text ? h("details", {}, h("summary", {}, "The promise in the model"), codeBlock(p.source)) : null];
  }

  pick(step, property) {
    if (property) this.view.property = property;
    this.view.asked = step;
    this.go(step);
  }

  toggle(set, name) {
    set.has(name) ? set.delete(name) : set.add(name);
    this.draw();
  }

  resized() {
    cancelAnimationFrame(this.soon);
    this.room = null;
    this.soon = requestAnimationFrame(() => this.draw());
  }

  /** The column of the present step stays in view of its own box; the page itself does not move. */
  showColumn() {
    const cell = this.timeline.querySelector("th.now"), box = this.timeline;
    if (!cell) return;
    const left = cell.offsetLeft, width = 150;
    if (left - width < box.scrollLeft || left + cell.offsetWidth > box.scrollLeft + box.clientWidth) box.scrollLeft = Math.max(0, left - box.clientWidth / 2);
  }

  rememberFocus() {
    const node = document.activeElement;
    return node && node !== document.body && this.root.contains(node) ? node.getAttribute("aria-label") || node.textContent : null;
  }

  restoreFocus(name) {
    if (!name || (document.activeElement && document.activeElement !== document.body)) return;
    const found = [...this.root.querySelectorAll("button, pre, [tabindex]")].find((n) => (n.getAttribute("aria-label") || n.textContent) === name);
    found?.focus({ preventScroll: true });
  }
}
