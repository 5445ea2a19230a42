// What the tests of the visualiser ask of a page, in the page.
({
  /** Texts whose contrast with what is behind them is below 4.5 to 1 (WCAG 2.1, AA). */
  faint() {
    const parse = (colour) => {
      const m = colour.match(/[\d.]+/g).map(Number);
      return { rgb: m.slice(0, 3), a: m[3] ?? 1 };
    };
    const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const under = (node) => {
      for (let n = node; n; n = n.parentElement) {
        const c = parse(getComputedStyle(n).backgroundColor);
        if (c.a === 1) return c.rgb;
      }
      return [255, 255, 255];
    };
    const inPicture = (text) => {
      const box = text.getBoundingClientRect(),
        svg = text.ownerSVGElement;
      let found = null;
      for (const rect of svg.querySelectorAll("rect")) {
        const b = rect.getBoundingClientRect(),
          fill = getComputedStyle(rect).fill;
        const below =
          rect.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING &&
          fill.startsWith("rgb") &&
          parse(fill).a === 1;
        if (
          below &&
          b.left <= box.left + 2 &&
          b.right >= box.right - 2 &&
          b.top <= box.top + 2 &&
          b.bottom >= box.bottom - 2
        )
          found = parse(fill).rgb;
      }
      return found || under(svg);
    };
    const found = new Set();
    for (const node of document.querySelectorAll("#app *")) {
      const says = [...node.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
      if (!says || !node.getClientRects().length || node.disabled || node.closest(".unseen, title, dialog")) continue;
      const drawn = node instanceof SVGElement;
      const ink = parse(getComputedStyle(node)[drawn ? "fill" : "color"]).rgb,
        ground = drawn ? inPicture(node.closest("text")) : under(node);
      const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x),
        ratio = (a + 0.05) / (b + 0.05);
      if (ratio < 4.5)
        found.add(`${ratio.toFixed(2)} ${node.tagName}.${node.getAttribute("class")} ${node.textContent.slice(0, 30)}`);
    }
    return [...found];
  },

  /** What can be used or looked at, and has no name. */
  nameless() {
    const named = (n) => n.getAttribute("aria-label") || n.textContent.trim() || n.closest("label")?.textContent.trim();
    const all = document.querySelectorAll('button, input, summary, [tabindex="0"], svg[role=img]');
    return [...all].filter((n) => !named(n)).map((n) => n.outerHTML);
  },

  sameIds() {
    const ids = [...document.querySelectorAll("[id]")].map((n) => n.id);
    return ids.filter((x, i) => ids.indexOf(x) !== i);
  },

  /** The diff as it stands in the step panel. */
  shownChanges() {
    return [...document.querySelectorAll("#step .changes tr")].map((row) => ({ ...row.dataset }));
  },

  /** The truth of every promise as it stands in the column of a step. */
  shownTruths(step) {
    const rows = [...document.querySelectorAll("tr.property")];
    return Object.fromEntries(
      rows.map((row) => [
        row.querySelector("button").textContent,
        JSON.parse(row.querySelector(`td[data-step="${step}"]`).dataset.holds),
      ]),
    );
  },

  /** Steps of which the page itself finds another diff or another loss than it was told. */
  otherwise() {
    const trace = insync.trace,
      found = [];
    for (let i = 0; i <= trace.last; i++) {
      const mine = i ? changesBetween(trace.values(i - 1), trace.values(i)) : [];
      if (i && !same(mine, trace.step(i).changes)) found.push(`diff ${i}`);
      if (!same(new Roles(trace.about.roles, trace.values(i)).losses(), trace.about.lost[i])) found.push(`loss ${i}`);
    }
    return found;
  },

  /** Milliseconds that steps take, the shortest first. */
  times(first, count) {
    const found = [];
    for (let i = 0; i < count; i++) {
      const start = performance.now();
      insync.go(first + i);
      found.push(performance.now() - start);
    }
    return found.sort((a, b) => a - b);
  },

  /** Milliseconds of work that a frame takes while a key is held: style, layout and script, the shortest first. */
  async held(first, count) {
    const found = [];
    for (let i = 0; i < count; i++) {
      const start = performance.now();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", repeat: true, bubbles: true }));
      document.body.getBoundingClientRect();
      found.push(performance.now() - start);
      await new Promise(requestAnimationFrame);
    }
    return found.sort((a, b) => a - b);
  },

  /** Texts of the scene that are drawn too small to read. */
  small() {
    return [...document.querySelectorAll("svg.scene text")]
      .filter((n) => n.getBoundingClientRect().height < 9)
      .map((n) => n.textContent);
  },

  /** In which part of the page the focus is. */
  part() {
    return document.activeElement.closest("header.top, .bar, #scene, #story, #step, .steps")?.className ?? "";
  },
});
