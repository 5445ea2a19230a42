// Lanes: the space-time diagram, time downwards, one line per actor; of a trace without actors, one per variable.

const ROW = 40,
  WINDOW = 36;

/**
 * The steps to draw: all, or of a long trace those around the present one; it stays while one walks a few steps.
 * @type {(trace: Trace, at: number, room?: number) => [number, number]}
 */
function windowOf(trace, at, room = WINDOW) {
  if (trace.last + 1 <= room + 4) return [0, trace.last];
  const half = room / 2;
  const first = Math.max(0, Math.min(Math.floor(at / half) * half - Math.floor(half / 2), trace.last - room));
  return [first, first + room];
}

class Lanes {
  /**
   * @param {Trace} trace
   * @param {number} at
   * @param {number} width
   * @param {(step: number) => void} go
   */
  constructor(trace, at, width, go) {
    this.trace = trace;
    this.at = at;
    this.go = go;
    this.narrow = width < 560;
    this.width = Math.round(Math.min(Math.max(width, 330), 1000));
    this.names = trace.about.lanes.length ? trace.about.lanes : trace.about.variables.map((v) => v.name).slice(0, 12);
    this.byVariable = !trace.about.lanes.length;
    const [first, end] = windowOf(trace, at);
    this.first = first;
    this.end = end;
    const left = 74,
      right = Math.round(this.width * (this.narrow ? 0.6 : 0.64)) - 30;
    this.letters = Math.floor((this.width - right - 34) / 7.8);
    this.x = new Map(
      this.names.map((n, i) => [
        n,
        left + (this.names.length > 1 ? (i * (right - left)) / (this.names.length - 1) : 0),
      ]),
    );
    this.labelX = right + 30;
  }

  /** What the drawing depends on; the present step is only marked in it. */
  get key() {
    return [this.trace.about.digest, this.first, this.end, this.width, this.narrow].join(" ");
  }

  /** @type {(step: number) => number} */
  y(step) {
    return 44 + (Math.max(this.first - 0.6, Math.min(step, this.end + 0.6)) - this.first) * ROW + ROW / 2;
  }

  draw() {
    const height = 44 + (this.end - this.first + 1) * ROW + 8;
    return s(
      "svg",
      {
        class: "lanes",
        viewBox: `0 0 ${this.width} ${height}`,
        width: this.width,
        height,
        role: "img",
        "aria-label": `Space-time diagram of steps ${this.first} to ${this.end}; lanes ${this.names.join(", ")}`,
      },
      this.heads(),
      this.rows(),
      this.lifelines(height),
      this.arrows(),
      this.dots(),
    );
  }

  heads() {
    return this.names.map((name, i) => {
      const slanted = this.byVariable && this.names.length > 4;
      return s(
        "text",
        { x: this.x.get(name), y: slanted && i % 2 ? 34 : 20, "text-anchor": "middle", class: "lane-name" },
        this.width < 460 && name.length > 4 ? name.slice(0, 3) : name.slice(0, 16),
      );
    });
  }

  rows() {
    const found = [],
      marks = this.trace.about.loop;
    for (let i = this.first; i <= this.end; i++) {
      const step = this.trace.step(i),
        y = this.y(i) - ROW / 2,
        lost = this.trace.about.story.breaks === i;
      const text = step
        ? step.action
          ? words(step.action)
          : plural(step.changes.length, "change")
        : this.trace.about.anywhere
          ? "somewhere"
          : "start";
      const room = this.letters;
      found.push(
        s(
          "g",
          { class: `lane-row${marks !== null && i > marks ? " loop" : ""}`, "data-step": i, onclick: () => this.go(i) },
          s("rect", { x: 0, y, width: this.width, height: ROW, rx: 6 }),
          s("text", { x: 12, y: y + 25, class: "lane-step" }, `T${i}`),
          s(
            "text",
            { x: this.labelX, y: y + 25, class: `lane-text${lost ? " lost" : ""}` },
            text.length > room ? `${text.slice(0, room - 1)}…` : text,
          ),
          s("title", {}, step ? `${step.action}(${step.parameters})` : "the first state"),
        ),
      );
    }
    return found;
  }

  /**
   * A dotted line while a replica is down, a thick one while it is the elected leader, or takes itself for the leader
   * where nobody else elects one.
   * @type {(height: number) => SVGElement[]}
   */
  lifelines(height) {
    const top = 44,
      found = [];
    for (const name of this.names)
      found.push(s("line", { class: "life", x1: this.x.get(name), x2: this.x.get(name), y1: top, y2: height - 6 }));
    if (this.byVariable) return found;
    for (let i = this.first; i <= this.end; i++) {
      const roles = this.trace.rolesAt(i);
      for (const r of roles.replicas) {
        const leads = roles.has("leader") ? roles.elected(r) : roles.leads(r);
        const kind = roles.down(r) ? "down" : leads ? "elected" : null;
        if (kind && this.x.has(r))
          found.push(
            s("line", {
              class: `life ${kind}`,
              x1: this.x.get(r),
              x2: this.x.get(r),
              y1: this.y(i),
              y2: this.y(i + 1),
            }),
          );
      }
    }
    return found;
  }

  arrows() {
    return this.trace.about.arrows.map((a) => {
      const x1 = this.x.get(a.source),
        x2 = this.x.get(a.target),
        taken = a.taken ?? this.trace.last + 1;
      if (x1 === undefined || x2 === undefined || taken < this.first || a.sent > this.end) return null;
      const y1 = this.y(a.sent),
        y2 = this.y(taken);
      const length = Math.hypot(x2 - x1, y2 - y1) || 1,
        ux = (x2 - x1) / length,
        uy = (y2 - y1) / length;
      const share = a.taken === null ? 0.55 : a.lost ? 0.72 : 1;
      const ex = x1 + ux * (length * share - (share === 1 ? 6 : 0)),
        ey = y1 + uy * (length * share - (share === 1 ? 6 : 0));
      const head = a.lost
        ? s("path", { class: "cross", d: `M${ex - 4} ${ey - 4} l8 8 M${ex + 4} ${ey - 4} l-8 8` })
        : a.taken === null
          ? null
          : s("path", {
              class: "head",
              d: `M${ex + ux * 2} ${ey + uy * 2} L${ex - ux * 7 - uy * 3.6} ${ey - uy * 7 + ux * 3.6} L${ex - ux * 7 + uy * 3.6} ${ey - uy * 7 - ux * 3.6} z`,
            });
      const mx = x1 + (ex - x1) * 0.5,
        my = y1 + (ey - y1) * 0.5;
      return s(
        "g",
        {
          class: `arrow ${a.kind}${a.lost ? " lost" : ""}${a.taken === null ? " flying" : ""}`,
          "data-sent": a.sent,
          "data-taken": a.taken,
        },
        s("line", { x1, y1, x2: ex, y2: ey }),
        head,
        length > 60 ? s("text", { x: mx, y: my - 5, "text-anchor": "middle", class: "arrow-text" }, a.text) : null,
        s(
          "title",
          {},
          `${a.text}: ${a.source} to ${a.target}, ${a.sent ? `sent at T${a.sent}` : "there from the start"}, ${a.lost ? "lost" : a.taken === null ? "still under way" : `taken up at T${a.taken}`}`,
        ),
      );
    });
  }

  dots() {
    const found = [];
    for (let i = Math.max(1, this.first); i <= this.end; i++) {
      const step = this.trace.step(i);
      if (!step) continue;
      const names = this.byVariable ? [...new Set(step.changes.map((c) => c.path.split(/[[.]/)[0]))] : [step.actor];
      for (const name of names) {
        if (!this.x.has(name)) continue;
        const kind = this.trace.about.story.breaks === i ? "loss" : step.events.length ? "event" : "";
        found.push(s("circle", { class: `dot ${kind}`, "data-step": i, cx: this.x.get(name), cy: this.y(i), r: 5 }));
      }
    }
    return found;
  }

  /**
   * Put the present step into a drawing that is there already.
   * @type {(svg: Element) => void}
   */
  mark(svg) {
    const at = String(this.at);
    for (const node of svg.querySelectorAll(".now")) {
      node.classList.remove("now");
      if (node.matches(".dot")) node.setAttribute("r", "5");
    }
    for (const node of svg.querySelectorAll(`[data-step="${at}"], [data-sent="${at}"], [data-taken="${at}"]`)) {
      node.classList.add("now");
      if (node.matches(".dot")) node.setAttribute("r", "7");
    }
  }
}
