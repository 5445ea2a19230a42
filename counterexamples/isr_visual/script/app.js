// The page: one step index, all views drawn from it, what the reader holds (buttons, scrubber, search, keys), links.

const KEYS = [
  ["→ or n", "next step"],
  ["← or p", "step before"],
  ["Home, End", "first, last step"],
  ["e, E", "next, previous event"],
  ["space", "play, stop"],
  ["x", "to the cause"],
  ["b", "to the step that breaks the promise"],
  ["u", "next step that the search finds"],
  ["1 2 3", "to scene, lanes, table"],
  ["w", "to what else could happen"],
  ["Esc", "back to the trace"],
  ["c", "only what changed"],
  ["/", "search"],
  ["a", "ask before revealing"],
  ["s", "save the scene as SVG"],
  ["i", "save the trace as ITF"],
  ["l", "copy a link"],
  ["t", "light or dark"],
  ["g", "gallery"],
  ["?", "these keys"],
];

const ICONS = {
  first: "M3 2h2v12H3z M14 2v12L6 8z",
  before: "M12 2v12L3 8z",
  next: "M4 2v12l9-6z",
  last: "M11 2h2v12h-2z M2 2v12l8-6z",
  stop: "M3 2h4v12H3z M9 2h4v12H9z",
};
const PACE = 1400;
/** Milliseconds after which a held key or a moving scrubber is at rest. */
const CALM = 140;

/** @type {Here} */
const NOWHERE = {
  branch: false,
  at: 0,
  off: 0,
  values: {},
  before: null,
  changes: [],
  lost: [],
  broken: [],
  action: "",
  parameters: "",
  actor: "",
  peer: "",
  says: "",
  role: "",
};

class App {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    const texts = read("itf");
    this.traces = read("document").map((about, n) => new Trace(/** @type {About} */ (about), String(texts[n])));
    /** @type {Trace | null} */
    this.shown = null;
    this.trace = this.traces[0];
    /** @type {View} */
    this.view = {
      at: 0,
      trail: [],
      property: null,
      hidden: new Set(),
      pinned: new Set(),
      changedOnly: false,
      filter: "",
      allProperties: false,
      allWays: false,
      watches: [],
      asking: false,
      asked: null,
      width: 760,
      here: NOWHERE,
    };
    this.live = byId("live");
    this.help = this.keysHelp();
    this.sheet = h("div", { id: "sheet" });
    /** The parts of the page that are drawn anew at each step. @type {{ [name: string]: HTMLElement }} */
    this.boxes = {};
    this.gallery = new Gallery(this.traces, (n, at) => {
      this.open(n, at);
      scrollTo(0, 0);
    });
    this.rushed = false;
    this.timers = { calm: 0, frame: 0, address: 0, playing: 0 };
    this.keyOf = { timeline: "", lanes: "" };
    /** @type {{ scene: number, lanes: number } | null} */
    this.room = null;
    /** @type {{ model: string | null, trace: string | null, known: boolean, beyond: string | null } | null} */
    this.linked = null;
    this.controls = new Controls(this);
    addEventListener("keydown", (event) => this.key(event));
    // by the time that this is handled the address may be another
    addEventListener("hashchange", (event) => {
      const gallery = !this.shown;
      if (this.readLink(new URL(event.newURL).hash) && gallery) scrollTo(0, 0);
    });
    addEventListener("beforeprint", () => this.shown && this.sheet.replaceChildren(contactSheet(this.shown)));
    addEventListener("resize", () => this.resized());
    if (this.readLink()) return;
    if (this.gathers) this.openGallery();
    else this.open(0);
  }

  // where the reader is

  /** @type {(n: number, at?: number) => void} */
  open(n, at) {
    this.stop();
    document.body.classList.add("opened");
    this.trace = this.traces[n];
    this.shown = this.trace;
    const property = this.trace.about.property || null;
    const fresh = { trail: [], asked: null, allWays: false, hidden: new Set(), pinned: new Set() };
    Object.assign(this.view, { at: at ?? this.trace.opensAt, property, ...fresh });
    this.build();
    this.draw();
  }

  /** Whether there is a gallery: of several traces, or of any below an overview. */
  get gathers() {
    return this.traces.length > 1 || document.getElementById("overview") !== null;
  }

  openGallery() {
    this.stop();
    document.body.classList.remove("opened");
    // or a link of the overview to where the address still points would open nothing
    if (location.hash) history.replaceState(null, "", "#");
    this.shown = null;
    this.root.replaceChildren(this.gallery.draw());
  }

  /** @type {(step: number) => void} */
  go(step) {
    if (!this.shown) return;
    const { view, trace } = this;
    const to = Math.max(0, Math.min(step, trace.last));
    const onward = to === view.at + 1 && !view.trail.length;
    if (view.asking && onward && view.asked !== to && trace.eventful(to)) {
      view.asked = to;
      this.stop();
      this.say(questionAbout(trace, to));
      this.draw();
      return;
    }
    Object.assign(view, { at: to, trail: [], asked: null, allWays: false });
    this.draw();
    this.say(this.narration());
  }

  /** As long as a key is held or the scrubber moves: what is out of sight, and code that nobody could read, waits. */
  rush() {
    this.rushed = true;
    clearTimeout(this.timers.calm);
    this.timers.calm = setTimeout(() => {
      this.rushed = false;
      this.draw();
    }, CALM);
  }

  play() {
    if (this.timers.playing) return this.stop();
    if (this.view.at === this.trace.last || this.view.trail.length) this.go(0);
    this.timers.playing = setInterval(() => {
      if (this.view.at === this.trace.last) this.stop();
      else this.go(this.view.at + 1);
    }, PACE);
    this.controls.update();
  }

  stop() {
    clearInterval(this.timers.playing);
    this.timers.playing = 0;
    if (this.shown) this.controls.update();
  }

  /** @type {(way: Way) => void} */
  take(way) {
    this.stop();
    this.view.trail = [...this.view.trail, way];
    this.view.allWays = false;
    this.draw();
    this.say(this.narration());
  }

  /** One step back on a way of one's own. */
  undo() {
    this.view.trail = this.view.trail.slice(0, -1);
    this.view.allWays = false;
    this.draw();
  }

  /** @type {(forward: boolean, test: (i: number) => boolean) => void} */
  find(forward, test) {
    const { at } = this.view;
    const steps = Array.from({ length: this.trace.last + 1 }, (_, i) => i);
    const ordered = forward ? steps.filter((i) => i > at) : steps.filter((i) => i < at).reverse();
    const found = ordered.find(test);
    if (found === undefined) return this.say(forward ? "None after this step." : "None before this step.");
    this.view.asked = found;
    this.go(found);
  }

  /** The state of the model that is shown; null where the model is not in the file. */
  state() {
    return this.view.trail.at(-1)?.to ?? this.trace.about.states[this.view.at] ?? null;
  }

  /**
   * Everything about the state that is shown, on the trace or off it.
   * @returns {Here}
   */
  here() {
    const { trace } = this;
    const { at, trail } = this.view;
    if (trail.length) return this.branched(trail);
    const step = trace.step(at);
    return {
      branch: false,
      at,
      off: 0,
      values: trace.values(at),
      before: at ? trace.values(at - 1) : null,
      changes: step?.changes ?? [],
      lost: trace.about.lost[at],
      broken: trace.breaksAt(at),
      action: step?.action ?? "",
      parameters: step?.parameters ?? "",
      actor: step?.actor ?? "",
      peer: step?.peer ?? "",
      says: step?.says ?? "",
      role: step?.role ?? "",
    };
  }

  /** @type {(trail: Way[]) => Here} */
  branched(trail) {
    const model = /** @type {Model} */ (this.trace.model);
    const way = trail[trail.length - 1];
    const from = trail.at(-2)?.to ?? this.trace.about.states[this.view.at];
    const values = valuesOf(model, way.to);
    const before = valuesOf(model, from);
    return {
      ...NOWHERE,
      branch: true,
      at: this.view.at,
      off: trail.length,
      values,
      before,
      changes: changesBetween(before, values),
      lost: new Roles(this.trace.about.roles, values).lost(),
      broken: way.breaks,
      action: way.action,
      parameters: way.parameters,
    };
  }

  narration() {
    const { here } = this.view;
    const what = `${here.branch ? "Off the trace" : `T${here.at}`}: ${words(here.action) || "start"}.`;
    return [what, here.says, ...here.lost].filter(Boolean).join(" ");
  }

  /** @type {(text: string) => void} */
  say(text) {
    this.live.textContent = text;
  }

  // links

  link() {
    const { about } = this.trace;
    const parts = new URLSearchParams({ t: String(this.view.at) });
    if (this.view.trail.length) parts.set("way", this.places().join("."));
    if (this.view.property) parts.set("p", this.view.property);
    parts.set("model", about.model_hash || "none");
    parts.set("trace", about.digest.slice(0, 12));
    return `#${parts}`;
  }

  /** Of each step of the reader's own way, which of the possible ones it is. */
  places() {
    const model = /** @type {Model} */ (this.trace.model);
    let state = this.trace.about.states[this.view.at];
    return this.view.trail.map((way) => {
      const k = waysFrom(model, state).findIndex((w) => w.action === way.action && w.parameters === way.parameters);
      state = way.to;
      return k;
    });
  }

  /** Whether there was a link to follow; what does not fit is said in a banner. */
  readLink(hash = location.hash) {
    const given = new URLSearchParams(hash.slice(1));
    const t = given.get("t");
    if (t === null) return false;
    const named = this.traces.findIndex((trace) => trace.about.digest.startsWith(given.get("trace") || "-"));
    const n = Math.max(0, named);
    const step = Number(t);
    const fits = Number.isInteger(step) && step >= 0 && step <= this.traces[n].last;
    this.linked = { model: given.get("model"), trace: given.get("trace"), known: named >= 0, beyond: fits ? null : t };
    this.open(n, fits ? step : 0);
    const asked = given.get("p");
    if (asked && this.trace.about.properties.some((p) => p.name === asked)) this.view.property = asked;
    this.followWay(given.get("way") ?? "");
    this.draw();
    return true;
  }

  /** @type {(text: string) => void} */
  followWay(text) {
    const { model } = this.trace;
    let state = this.state();
    for (const k of text.split(".").filter(Boolean).map(Number)) {
      const way = model && state ? waysFrom(model, state)[k] : undefined;
      if (!way) return;
      this.view.trail.push(way);
      state = way.to;
    }
  }

  banners() {
    const { about, intact, itf } = this.trace;
    const { linked } = this;
    const found = [];
    const distrust = "Do not trust what it shows.";
    if (!intact)
      found.push(`The states in this file are not those that it was made with: its checksum does not fit. ${distrust}`);
    const named = itf["#meta"]?.model_hash ?? "";
    const own = about.model_hash || "none";
    if (about.model_hash && named !== about.model_hash)
      found.push(`The trace names model ${named || "none"}, this page ${about.model_hash}. ${distrust}`);
    if (about.mismatch) found.push(`The model has changed since: ${about.mismatch}`);
    if (linked?.model && linked.model !== own)
      found.push(`The link was made for model ${linked.model}; this file is of model ${own}.`);
    else if (linked?.trace && !linked.known)
      found.push("The link was made for another trace of this model; its steps need not be these.");
    if (linked?.beyond) found.push(`The link leads to step ${linked.beyond}, which this trace does not have.`);
    return found.map((text) => h("p", { class: "banner", role: "alert" }, text));
  }

  // drawing

  build() {
    const { trace } = this;
    const { about } = trace;
    this.room = null;
    this.keyOf = { timeline: "", lanes: "" };
    this.controls = new Controls(this);
    const { controls, boxes } = this;
    /** @type {(name: string, attributes?: Attributes) => HTMLElement} */
    const box = (name, attributes = {}) => {
      boxes[name] = h("div", { class: "panel-body", ...attributes });
      return boxes[name];
    };
    /** @type {(id: string, title: string, ...more: Content[]) => HTMLElement} */
    const panel = (id, title, ...more) =>
      h(
        "section",
        { id, class: "panel", tabindex: "-1", "aria-label": title },
        h("header", { class: "panel-head" }, h("h2", {}, title), more),
        box(id),
      );
    const columns = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Timeline, one column per state" };
    const scene = h(
      "section",
      { id: "scene", class: "panel", tabindex: "-1", "aria-label": trace.drawable ? "Scene" : "State" },
      box("caption", { class: "caption" }),
      box("scene"),
    );
    const history_ = background(trace, (i) => this.go(i));
    const main = h("main", {}, [
      box("banner", { class: "banners" }),
      controls.bar,
      h("div", { class: "first" }, scene, panel("story", "What happened")),
      box("legend"),
      h(
        "div",
        { class: "stage" },
        h(
          "section",
          { class: "panel steps", "aria-label": "Timeline" },
          h(
            "header",
            { class: "panel-head" },
            h("h2", {}, "Timeline"),
            h("div", { class: "tools" }, controls.switches),
          ),
          box("timeline", columns),
          signs(trace),
          box("reason", { class: "reason-box" }),
          controls.form,
        ),
        h("section", { id: "step", class: "panel", "aria-label": "Step", tabindex: "-1" }, box("step")),
      ),
      history_ ? h("section", { id: "background", class: "panel", "aria-label": "Background" }, history_) : null,
      h("div", { class: "pair" }, panel("lanes", "Lanes"), panel("variables", "Variables", controls.tableTools)),
      about.model ? panel("whatif", "What else could happen here") : null,
      about.against ? panel("against", `The same schedule under ${about.against.label}`) : null,
    ]);
    if (!about.model) delete boxes.whatif;
    if (!about.against) delete boxes.against;
    this.sheet.replaceChildren();
    this.root.replaceChildren(heading(this, trace), main, this.sheet, this.help);
    boxes.legend.replaceChildren(...flat(trace.drawable ? legend("consumed" in trace.values(0)) : null));
  }

  draw() {
    if (!this.shown) return;
    const focus = this.rememberFocus();
    const { trace, view, boxes } = this;
    view.here = this.here();
    this.room ??= { scene: boxes.scene.clientWidth || 760, lanes: boxes.lanes.clientWidth || 760 };
    view.width = this.room.scene;
    this.put("banner", this.banners());
    this.put("caption", this.caption());
    this.put("scene", this.picture());
    this.put("story", new StoryPanel(trace, view, (i) => this.go(i)).draw());
    this.drawTimeline();
    this.put("reason", this.whyBox());
    this.put("step", this.question() || new StepPanel(trace, view, !this.rushed).draw());
    if (!this.waits("lanes")) this.drawLanes(this.room.lanes);
    const acts = this.acts();
    if (!this.waits("variables")) this.put("variables", new VariableTable(trace, view, acts).draw());
    if (!this.waits("whatif")) this.put("whatif", new Explorer(trace, view, acts, this.state()).draw());
    if (!this.waits("against")) this.put("against", new Against(trace, view, acts).draw());
    document.body.classList.toggle("off-trace", view.here.branch);
    this.controls.update();
    this.restoreFocus(focus);
    cancelAnimationFrame(this.timers.frame);
    this.timers.frame = requestAnimationFrame(() => this.showColumn());
    clearTimeout(this.timers.address); // a browser takes only so many new addresses per second
    this.timers.address = setTimeout(() => this.shown && history.replaceState(null, "", this.link()), 200);
  }

  /** Whether a part can wait: it is not on this page, or it is out of sight while a key is held. */
  waits(/** @type {string} */ name) {
    const box = this.boxes[name];
    return !box || (this.rushed && box.getBoundingClientRect().top > innerHeight);
  }

  /** @type {(name: string, content: Content) => void} */
  put(name, content) {
    this.boxes[name]?.replaceChildren(...flat(content));
  }

  drawTimeline() {
    const drawn = new Timeline(this.trace, this.view, (i, property) => this.pick(i, property));
    if (drawn.key !== this.keyOf.timeline) this.put("timeline", drawn.draw());
    this.keyOf.timeline = drawn.key;
    drawn.mark(/** @type {HTMLTableElement} */ (this.boxes.timeline.firstChild));
  }

  /** @type {(width: number) => void} */
  drawLanes(width) {
    const drawn = new Lanes(this.trace, this.view.at, width, (i) => this.go(i));
    if (drawn.key !== this.keyOf.lanes) this.put("lanes", drawn.draw());
    this.keyOf.lanes = drawn.key;
    drawn.mark(/** @type {SVGElement} */ (this.boxes.lanes.firstChild));
  }

  /** @returns {Acts} */
  acts() {
    const { view } = this;
    return {
      go: (i) => this.go(i),
      take: (way) => this.take(way),
      back: () => this.go(view.at),
      undo: () => this.undo(),
      allWays: () => {
        view.allWays = true;
        this.draw();
      },
      pin: (name) => this.toggle(view.pinned, name),
      hide: (name) => this.toggle(view.hidden, name),
      showAll: () => {
        view.hidden.clear();
        this.draw();
      },
      unwatch: (text) => {
        view.watches = view.watches.filter((x) => x !== text);
        this.draw();
      },
    };
  }

  /**
   * Above the picture: who did what, and what is lost or broken by it.
   * @returns {Content}
   */
  caption() {
    const { here } = this.view;
    const what = here.action
      ? words(here.action)
      : here.at === 0
        ? this.beginning()
        : plural(here.changes.length, "change");
    const where = here.branch ? `T${here.at} + ${here.off}` : `T${here.at}`;
    const off = here.branch ? h("p", { class: "off" }, this.offTrace()) : null;
    return [
      off,
      h(
        "p",
        { class: "caption-line" },
        h("b", {}, where),
        ` ${what}`,
        here.parameters ? h("code", {}, here.parameters) : null,
      ),
      here.lost.map((line) =>
        h("p", { class: marked("loss", false) + (line.startsWith("LOST") ? "" : " unavailable") }, line),
      ),
      here.broken.length ? h("p", { class: "broken" }, "Broken by this step: ", here.broken.join(", ")) : null,
    ];
  }

  beginning() {
    return this.trace.about.anywhere ? "somewhere" : "start";
  }

  /** @returns {Content} */
  offTrace() {
    const back = button("Back to the trace", { class: "link", onclick: () => this.go(this.view.at) });
    return [`What if: not the trace, but ${plural(this.view.here.off, "step")} off it. `, back];
  }

  picture() {
    const { here, width } = this.view;
    return this.trace.drawn(here.values, { before: here.before, changes: here.changes, width });
  }

  /** @returns {Content} */
  question() {
    const { asked, at, asking } = this.view;
    if (!asking || asked !== at + 1) return null;
    return h(
      "div",
      { class: "question" },
      h("p", { class: "eyebrow" }, `before T${asked}`),
      h("h2", { class: "action-name" }, "What happens now?"),
      h("p", { class: "says" }, questionAbout(this.trace, asked)),
      button("Reveal", { class: "primary", onclick: () => this.go(asked) }),
    );
  }

  /**
   * Why a promise holds or does not: what it says in words, then the conjunct with its witness, then its source.
   * @returns {Content}
   */
  whyBox() {
    const p = this.trace.about.properties.find((x) => x.name === this.view.property);
    if (!p || this.view.trail.length) return null;
    const { at } = this.view;
    const k = p.reasons[at];
    const holds = p.holds[at];
    const seeks = p.kind.startsWith("sometimes");
    const told = seeks ? ["happens", "does not happen"] : ["holds", "is broken"];
    const word = holds === null ? "says nothing of the first state" : told[holds ? 0 : 1];
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
            h("ul", { class: "reasons", "data-reason": k }, reasonTree(this.trace.about.reasons[k])),
          ),
      p.source.text ? h("details", {}, h("summary", {}, "The promise in the model"), codeBlock(p.source)) : null,
    ];
  }

  /** @type {(step: number, property?: string) => void} */
  pick(step, property) {
    if (property) this.view.property = property;
    this.view.asked = step;
    this.go(step);
  }

  /** @type {(set: Set<string>, name: string) => void} */
  toggle(set, name) {
    if (!set.delete(name)) set.add(name);
    this.draw();
  }

  resized() {
    cancelAnimationFrame(this.timers.frame);
    this.room = null;
    this.timers.frame = requestAnimationFrame(() => this.draw());
  }

  /** The column of the present step stays in view of its own box; the page itself does not move. */
  showColumn() {
    const box = this.boxes.timeline;
    const cell = /** @type {HTMLElement | null} */ (box.querySelector("th.now"));
    if (!cell) return;
    const left = cell.offsetLeft;
    const outside = left - 150 < box.scrollLeft || left + cell.offsetWidth > box.scrollLeft + box.clientWidth;
    if (outside) box.scrollLeft = Math.max(0, left - box.clientWidth / 2);
  }

  rememberFocus() {
    const node = document.activeElement;
    return node && node !== document.body && this.root.contains(node) ? nameOf(node) : null;
  }

  /** @type {(name: string | null) => void} */
  restoreFocus(name) {
    if (!name || (document.activeElement && document.activeElement !== document.body)) return;
    /** @type {NodeListOf<HTMLElement>} */
    const all = this.root.querySelectorAll("button, pre, [tabindex]");
    [...all].find((node) => nameOf(node) === name)?.focus({ preventScroll: true });
  }

  // keys

  keysHelp() {
    const help = h(
      "dialog",
      { class: "help", "aria-label": "Keys" },
      h("h2", {}, "Keys"),
      h(
        "dl",
        {},
        KEYS.map(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)]),
      ),
      button("Close", { class: "primary", onclick: () => help.close() }),
    );
    return help;
  }

  /** @type {(event: KeyboardEvent) => void} */
  key(event) {
    if (!this.shown || event.ctrlKey || event.metaKey || event.altKey || this.help.open) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const type = target instanceof HTMLInputElement ? target.type : "";
    const typing = target.matches?.("input, textarea, select");
    const range = type === "range";
    const ticking = type === "checkbox" && event.key.length === 1 && event.key !== " ";
    if (typing && !range && !ticking) {
      if (event.key === "Escape") {
        event.preventDefault(); // which would empty a search field
        target.blur();
      }
      return;
    }
    if (event.key === " " && target.matches?.("button, summary, a, pre, [role=region]")) return;
    const act = this.keys()[event.key];
    if (!act || (range && /^(Arrow|Home|End)/.test(event.key))) return;
    event.preventDefault();
    if (event.repeat) this.rush();
    if (event.key !== " ") this.stop();
    act();
  }

  /** @returns {{ [key: string]: () => void }} */
  keys() {
    const { view, trace } = this;
    /** @type {(id: string) => () => void} */
    const focus = (id) => () => {
      const node = document.getElementById(id);
      node?.focus({ preventScroll: true });
      node?.scrollIntoView({ block: "nearest" });
    };
    const next = () => this.go(view.at + 1);
    const back = () => (view.trail.length ? this.undo() : this.go(view.at - 1));
    /** @type {(forward: boolean) => () => void} */
    const event = (forward) => () => this.find(forward, (i) => trace.eventful(i));
    const { breaks, cause } = trace.about.story;
    return {
      ArrowRight: next,
      n: next,
      ArrowLeft: back,
      p: back,
      Home: () => this.go(0),
      End: () => this.go(trace.last),
      e: event(true),
      E: event(false),
      " ": () => this.play(),
      x: () => this.go(cause ?? breaks ?? trace.last),
      b: () => this.go(breaks ?? trace.last),
      u: () => this.controls.next(),
      1: focus("scene"),
      2: focus("lanes"),
      3: focus("variables"),
      w: focus("whatif"),
      Escape: () => this.go(view.at),
      c: () => {
        view.changedOnly = !view.changedOnly;
        this.draw();
      },
      "/": () => this.controls.search.focus(),
      a: () => {
        view.asking = !view.asking;
        view.asked = null;
        this.draw();
        this.say(view.asking ? "Asks before revealing." : "Reveals at once.");
      },
      s: () => this.saveScene(),
      i: () => this.saveItf(),
      l: () => this.copyLink(),
      t: () => this.turnTheme(),
      g: () => {
        if (this.gathers) this.openGallery();
      },
      "?": () => this.help.showModal(),
    };
  }

  // taking along

  saveItf() {
    save(`${this.trace.about.name}.itf.json`, "application/json", this.trace.itfText);
  }

  saveScene() {
    const { scene, lanes } = this.boxes;
    const svg = /** @type {SVGElement | null} */ (scene.querySelector("svg.scene") ?? lanes.querySelector("svg"));
    if (!svg) return;
    const ground = getComputedStyle(byId("scene")).backgroundColor;
    save(`${this.trace.about.name}-T${this.view.at}.svg`, "image/svg+xml", svgText(svg, ground));
  }

  copyLink() {
    const link = location.href.split("#")[0] + this.link();
    const shown = () => this.say(link);
    if (navigator.clipboard) navigator.clipboard.writeText(link).then(() => this.say("The link is copied."), shown);
    else shown();
    history.replaceState(null, "", this.link());
  }

  turnTheme() {
    const { dataset } = document.documentElement;
    const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const dark = (dataset.theme || preferred) === "dark";
    dataset.theme = dark ? "light" : "dark";
    this.say(dark ? "Light." : "Dark.");
  }
}

/**
 * The data in the page's script elements of a kind.
 * @type {(kind: string) => unknown[]}
 */
const read = (kind) =>
  [...document.querySelectorAll(`script.${kind}`)].map((node) => JSON.parse(node.textContent ?? "null"));

/** @type {(node: Element) => string | null} */
const nameOf = (node) => node.getAttribute("aria-label") || node.textContent;

/** What the reader holds: buttons, scrubber, search. */
class Controls {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    const { trace, view } = app;
    const { last } = trace;
    this.scrub = h("input", { type: "range", min: 0, max: last, step: 1, value: 0, "aria-label": "Step" });
    this.scrub.addEventListener("input", () => {
      app.stop();
      app.rush();
      view.asked = Number(this.scrub.value);
      app.go(Number(this.scrub.value));
    });
    this.place = h("output", { class: "place" });
    this.player = button("Play", { class: "nav wide play", title: "Play (space)", onclick: () => app.play() });
    this.bar = h("div", { class: "bar", role: "group", "aria-label": "Move" }, this.buttons());
    this.all = this.tick((on) => {
      view.allProperties = on;
    });
    this.ask = this.tick((on) => {
      view.asking = on;
      view.asked = null;
    });
    this.switches = [
      trace.about.properties.length ? h("label", {}, this.all, " All promises") : null,
      h("label", {}, this.ask, " Ask before revealing"),
    ];
    this.only = this.tick((on) => {
      view.changedOnly = on;
    });
    this.filter = h("input", { type: "search", placeholder: "filter", "aria-label": "Filter variables" });
    this.filter.addEventListener("input", () => {
      view.filter = this.filter.value;
      app.draw();
    });
    this.tableTools = h("div", { class: "tools" }, h("label", {}, this.only, " Changed only"), this.filter);
    const example = trace.drawable ? "acked - log[r1]" : `${trace.about.variables[0]?.name ?? "x"} != 0`;
    this.search = h("input", {
      type: "search",
      placeholder: `Search or watch: a word, or ${example}`,
      "aria-label": "Search text or predicate",
      spellcheck: "false",
    });
    this.note = h("span", { class: "note", role: "status" });
    this.form = h(
      "form",
      {
        class: "search",
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.next();
        },
      },
      this.search,
      button("Find", { onclick: () => this.next() }),
      button("Watch", { onclick: () => this.watch() }),
      this.note,
    );
  }

  buttons() {
    const { app } = this;
    const { last } = app.trace;
    /** @type {(path: string, name: string, to: () => number, key: string) => HTMLElement} */
    const go = (path, name, to, key) =>
      button(
        "",
        {
          class: "nav",
          "aria-label": name,
          title: `${name} (${key})`,
          onclick: () => {
            app.stop();
            app.go(to());
          },
        },
        icon(path, 14),
      );
    return [
      this.player,
      go(ICONS.first, "First step", () => 0, "Home"),
      go(ICONS.before, "Step before", () => app.view.at - 1, "←"),
      go(ICONS.next, "Next step", () => app.view.at + 1, "→"),
      go(ICONS.last, "Last step", () => last, "End"),
      button("Next event", {
        class: "nav wide",
        title: "in-sync set, watermark, leader, acknowledgement, loss (e)",
        onclick: () => app.find(true, (i) => app.trace.eventful(i)),
      }),
      this.scrub,
      this.place,
    ];
  }

  /** @type {(act: (on: boolean) => void) => HTMLInputElement} */
  tick(act) {
    const box = h("input", { type: "checkbox" });
    box.addEventListener("change", () => {
      act(box.checked);
      this.app.draw();
    });
    return box;
  }

  /** The next step, from the start again after the end, that says the text or of which the predicate holds. */
  next() {
    const { app } = this;
    const text = this.search.value.trim();
    if (!text) return;
    const test = this.test(text);
    const count = app.trace.last + 1;
    const found = Array.from({ length: count }, (_, k) => (app.view.at + 1 + k) % count).find(test);
    this.note.textContent = found === undefined ? `no step: ${text}` : `T${found}`;
    if (found === undefined) return;
    app.view.asked = found;
    app.go(found);
  }

  /** @type {(text: string) => (i: number) => boolean} */
  test(text) {
    const { trace } = this.app;
    if (/[=<>]|\b(in|not|and|or)\b|\[/.test(text)) {
      try {
        const holds = watchExpression(text);
        return (i) => holds(trace.values(i), i ? trace.values(i - 1) : null) === true;
      } catch {
        // then it is a text like any other
      }
    }
    const word = text.toLowerCase();
    return (i) => {
      const step = trace.step(i);
      const changed = (step?.changes ?? []).map((c) => `${c.path} ${c.before} ${c.after}`);
      const own = step ? [step.action, words(step.action), step.parameters, step.says] : [];
      return [...own, ...changed, ...trace.about.lost[i]].join("\n").toLowerCase().includes(word);
    };
  }

  watch() {
    const { app } = this;
    const text = this.search.value.trim();
    if (!text) return;
    try {
      watchExpression(text);
      this.note.textContent = "watched in the table";
      if (!app.view.watches.includes(text)) app.view.watches.push(text);
      app.draw();
    } catch (problem) {
      this.note.textContent = problem instanceof Error ? problem.message : String(problem);
    }
  }

  update() {
    const { view, trace, timers } = this.app;
    this.scrub.value = String(view.at);
    this.scrub.setAttribute("aria-valuetext", `T${view.at} of ${trace.last}`);
    this.place.textContent = `T${view.at} / ${trace.last}`;
    const playing = timers.playing !== 0;
    const name = playing ? "Stop" : "Play";
    this.player.setAttribute("aria-pressed", String(playing));
    if (this.player.textContent !== name)
      this.player.replaceChildren(icon(playing ? ICONS.stop : ICONS.next, 13), name);
    this.all.checked = view.allProperties;
    this.ask.checked = view.asking;
    this.only.checked = view.changedOnly;
  }
}

// `insync` is there for whoever opens the console; an overview without any trace has no other page.
if (document.querySelector("script.document")) window.insync = new App(byId("app"));
else byId("app").remove();
