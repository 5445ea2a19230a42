// The parts of the page of one trace: boxes, each drawn anew at each step unless it can wait.

class Panels {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** By name. @type {{ [name: string]: HTMLElement }} */
    this.boxes = {};
    /** What the boxes show that are drawn anew only where it changes. */
    this.keyOf = { timeline: "", lanes: "" };
    /** Widths in pixels; null until they are measured. @type {{ scene: number, lanes: number } | null} */
    this.room = null;
    this.main = this.build();
  }

  /** @returns {HTMLElement} */
  build() {
    const { boxes, app } = this;
    const { trace, controls } = app;
    const { about } = trace;
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
    const history_ = background(trace, (i) => app.go(i));
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
    boxes.legend.replaceChildren(...flat(trace.drawable ? legend(trace.rolesAt(0)) : null));
    return main;
  }

  draw() {
    const { app, boxes } = this;
    const { trace, view } = app;
    /** @type {(step: number) => void} */
    const go = (step) => app.go(step);
    this.room ??= { scene: boxes.scene.clientWidth || 760, lanes: boxes.lanes.clientWidth || 760 };
    view.width = this.room.scene;
    const { here, width } = view;
    this.put("banner", banners(trace, app.arrival));
    this.put(
      "caption",
      caption(trace, here, () => app.go(view.at)),
    );
    this.put("scene", trace.drawScene(here.values, { before: here.before, changes: here.changes, width }));
    this.put("story", new StoryPanel(trace, view, go).draw());
    this.drawTimeline();
    this.put("reason", promiseBox(trace, view));
    this.put("step", question(trace, view, go) || new StepPanel(trace, view, !app.inHaste).draw());
    if (!this.waits("lanes")) this.drawLanes(this.room.lanes);
    const acts = app.acts();
    if (!this.waits("variables")) this.put("variables", new VariableTable(trace, view, acts).draw());
    if (!this.waits("whatif")) this.put("whatif", new Explorer(trace, view, acts, stateShown(trace, view)).draw());
    if (!this.waits("against")) this.put("against", new Against(trace, view, acts).draw());
  }

  /** Whether a part can wait: it is not on this page, or it is out of sight while a key is held. */
  waits(/** @type {string} */ name) {
    const box = this.boxes[name];
    return !box || (this.app.inHaste && box.getBoundingClientRect().top > innerHeight);
  }

  /** @type {(name: string, content: Content) => void} */
  put(name, content) {
    this.boxes[name]?.replaceChildren(...flat(content));
  }

  drawTimeline() {
    const { trace, view } = this.app;
    const timeline = new Timeline(trace, view, (i, property) => this.app.pick(i, property));
    if (timeline.key !== this.keyOf.timeline) this.put("timeline", timeline.draw());
    this.keyOf.timeline = timeline.key;
    timeline.mark(/** @type {HTMLTableElement} */ (this.boxes.timeline.firstChild));
  }

  /** @type {(width: number) => void} */
  drawLanes(width) {
    const { trace, view } = this.app;
    const lanes = new Lanes(trace, view.at, width, (i) => this.app.go(i));
    if (lanes.key !== this.keyOf.lanes) this.put("lanes", lanes.draw());
    this.keyOf.lanes = lanes.key;
    lanes.mark(/** @type {SVGElement} */ (this.boxes.lanes.firstChild));
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
}

/** @type {(node: Element) => string | null} */
const nameOf = (node) => node.getAttribute("aria-label") || node.textContent;

/**
 * The name of what has the focus below `root`; null where nothing has.
 * @type {(root: HTMLElement) => string | null}
 */
function focusBelow(root) {
  const node = document.activeElement;
  return node && node !== document.body && root.contains(node) ? nameOf(node) : null;
}

/**
 * Gives the focus to what has this name, if what had it was drawn anew.
 * @type {(root: HTMLElement, name: string | null) => void}
 */
function refocus(root, name) {
  if (!name || (document.activeElement && document.activeElement !== document.body)) return;
  /** @type {NodeListOf<HTMLElement>} */
  const all = root.querySelectorAll("button, pre, [tabindex]");
  [...all].find((node) => nameOf(node) === name)?.focus({ preventScroll: true });
}
