// The page: where the reader is, the steps from there, and all that is drawn from it.

const PACE = 1400;
/** Milliseconds after which a held key or a moving scrubber is at rest. */
const CALM = 140;

class App {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    const texts = read("itf");
    this.traces = read("document").map((about, n) => new Trace(/** @type {About} */ (about), String(texts[n])));
    /** @type {Trace | null} */
    this.openTrace = null;
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
    this.help = keysHelp();
    this.sheet = h("div", { id: "sheet" });
    this.gallery = new Gallery(this.traces, (n, at) => {
      this.open(n, at);
      scrollTo(0, 0);
    });
    this.inHaste = false;
    this.timers = { calm: 0, frame: 0, address: 0, playing: 0 };
    /** The link that led here. @type {Link | null} */
    this.arrival = null;
    /** Of the trace that is open. @type {Panels | null} */
    this.panels = null;
    this.controls = new Controls(this);
    addEventListener("keydown", (event) => keyPressed(this, event));
    // by the time that this is handled the address may be another
    addEventListener("hashchange", (event) => {
      const gallery = !this.openTrace;
      if (this.follow(new URL(event.newURL).hash) && gallery) scrollTo(0, 0);
    });
    addEventListener("beforeprint", () => this.openTrace && this.sheet.replaceChildren(contactSheet(this.openTrace)));
    addEventListener("resize", () => this.fitWindow());
    if (this.follow()) return;
    if (this.gathers) this.openGallery();
    else this.open(0);
  }

  // where the reader is

  /** @type {(n: number, at?: number) => void} */
  open(n, at) {
    this.stop();
    document.body.classList.add("opened");
    this.trace = this.traces[n];
    this.openTrace = this.trace;
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
    this.openTrace = null;
    this.root.replaceChildren(this.gallery.draw());
  }

  /** @type {(step: number) => void} */
  go(step) {
    if (!this.openTrace) return;
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
    this.say(narration(this.view.here));
  }

  /** As long as a key is held or the scrubber moves: what is out of sight, and code that nobody could read, waits. */
  rush() {
    this.inHaste = true;
    clearTimeout(this.timers.calm);
    this.timers.calm = setTimeout(() => {
      this.inHaste = false;
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
    if (this.openTrace) this.controls.update();
  }

  /** @type {(way: Way) => void} */
  take(way) {
    this.stop();
    this.view.trail = [...this.view.trail, way];
    this.view.allWays = false;
    this.draw();
    this.say(narration(this.view.here));
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

  /** @type {(text: string) => void} */
  say(text) {
    this.live.textContent = text;
  }

  /** Whether there was a link to follow; what does not fit is said in a banner. */
  follow(hash = location.hash) {
    const link = linkFrom(hash, this.traces);
    if (!link) return false;
    this.arrival = link;
    this.open(link.n, link.at);
    const { trace, view } = this;
    if (link.property && trace.about.properties.some((p) => p.name === link.property)) view.property = link.property;
    view.trail = wayAlong(trace, view.at, link.way);
    this.draw();
    return true;
  }

  // drawing

  build() {
    this.controls = new Controls(this);
    this.panels = new Panels(this);
    this.sheet.replaceChildren();
    this.root.replaceChildren(heading(this, this.trace), this.panels.main, this.sheet, this.help);
  }

  draw() {
    const { panels, timers, view } = this;
    if (!this.openTrace || !panels) return;
    const focus = focusBelow(this.root);
    view.here = hereOf(this.trace, view);
    panels.draw();
    document.body.classList.toggle("off-trace", view.here.branch);
    this.controls.update();
    refocus(this.root, focus);
    cancelAnimationFrame(timers.frame);
    timers.frame = requestAnimationFrame(() => panels.showColumn());
    clearTimeout(timers.address); // a browser takes only so many new addresses per second
    timers.address = setTimeout(() => this.openTrace && history.replaceState(null, "", this.link()), 200);
  }

  /** To what is shown. */
  link() {
    return linkTo(this.trace, this.view);
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

  fitWindow() {
    cancelAnimationFrame(this.timers.frame);
    if (this.panels) this.panels.room = null;
    this.timers.frame = requestAnimationFrame(() => this.draw());
  }

  // taking along

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

// `insync` is there for whoever opens the console; an overview without any trace has no other page.
if (document.querySelector("script.document")) window.insync = new App(byId("app"));
else byId("app").remove();
