// Flame graphs: boxes are made when they become wide enough to be seen, from the nodes of the tree that
// they stand for. A box that goes down holds nodes; its children are their children, by method. A box
// that goes up holds nodes with a weight of their own; its children are their callers.
"use strict";

const ROW = 18;
const NARROW = 0.4;
/** The keys of boxes that stand for several frames of a stack. */
const RUN = "run";
const TRUNK = "trunk";
/** Maximum number of matches that a search steps through. */
const MOST_MATCHES = 1000;
/** A match that is narrower than this is zoomed to. */
const READABLE = 60;

/** How much a set of things weighs in the older and the newer run; with one run all is new. */
class Weights {
  constructor(sums, older) {
    this.sums = sums;
    this.older = older;
  }
  whole(node) {
    return [this.older ? this.older.whole[node] : 0, this.sums.whole[node]];
  }
  self(node) {
    return [this.older ? this.older.self[node] : 0, this.sums.self[node]];
  }
  context(context) {
    return [this.older ? this.older.byContext[context] : 0, this.sums.byContext[context]];
  }
}

class Box {
  /** Without a name it has that of the method which is its key. */
  constructor(parent, key, name) {
    this.parent = parent;
    this.key = key;
    this.said = name;
    this.tints = [];
    this.depth = parent ? parent.depth + 1 : 0;
    this.old = 0;
    this.now = 0;
    this.nodes = [];
    this.olds = [];
    this.nows = [];
    /** Below the box, where not all that its nodes lead to is below it: nodes with weights. */
    this.next = null;
    /** The nodes whose own events are in the box. */
    this.ends = [];
    this.run = null;
    this.chain = null;
    this.list = null;
  }
  get size() {
    return this.old + this.now;
  }
  /** Most boxes are too narrow to be shown: names are made when they are asked for. */
  get name() {
    if (this.said === null) this.said = this.run ? this.run.name : methodName(this.key);
    return this.said;
  }
  get isSeveral() {
    return this.key === RUN || this.key === TRUNK;
  }
  /** The methods that the box stands for. */
  methods() {
    if (this.key === TRUNK) return this.chain.flatMap((box) => box.methods());
    if (this.key === RUN) return [...this.run.methods().keys()];
    return typeof this.key === "number" && this.key !== REST ? [this.key] : [];
  }
  get isOwn() {
    return this.key === TRUNK ? this.chain.some((box) => box.isOwn) : typeof this.key === "number" && isOwn(this.key);
  }
  /** Methods of a package have one colour: a strong one if it is own code. Each frame of a zoom asks for it. */
  tint(dark, pale) {
    const variant = (dark ? 2 : 0) + (pale ? 1 : 0);
    if (this.tints[variant] === undefined) {
      const hash = this.isSeveral ? 0 : hashOf(packageName(this.key));
      const isStrong = !hasOwn || this.isOwn;
      const hue = isStrong ? 18 + (hash % 40) : 205 + (hash % 30);
      const light = (isStrong ? (dark ? 30 : 74) : dark ? 25 : 84) + ((hash >> 8) % 9);
      const colour = isStrong ? (dark ? 52 : 78) : dark ? 12 : 20;
      this.tints[variant] = `hsl(${hue} ${pale ? Math.min(18, colour) : colour}% ${pale ? (dark ? 24 : 90) : light}%)`;
    }
    return this.tints[variant];
  }
  /** Takes the events of a node itself. */
  end(node, weight) {
    this.next ||= [];
    this.ends.push(node);
    this.old += weight[0];
    this.now += weight[1];
  }
  /** Takes a weight of which the nodes that follow are known: `next` is shown below this box. */
  lead(next, weight) {
    (this.next ||= []).push([next, weight]);
    this.old += weight[0];
    this.now += weight[1];
  }
  /** Takes a node with its weight, or a part of it. */
  take(node, [old, now]) {
    this.nodes.push(node);
    this.olds.push(old);
    this.nows.push(now);
    this.old += old;
    this.now += now;
  }
}

/** Boxes by key, the largest first. */
class Group {
  constructor(parent) {
    this.parent = parent;
    this.boxes = new Map();
  }
  box(key, name) {
    let box = this.boxes.get(key);
    if (!box) {
      box = new Box(this.parent, key, name);
      this.boxes.set(key, box);
    }
    return box;
  }
  method(method) {
    return this.box(method, null);
  }
  type(type) {
    return this.box("type " + type, typeName(type) || "(no type)");
  }
  /** The box of runs of frames that are not own code. */
  run() {
    const box = this.box(RUN, null);
    box.run ||= new FrameRuns();
    return box;
  }
  /** What is too small to be shown one by one comes last. */
  sorted() {
    const last = (box) => (box.key === REST ? 1 : 0);
    return [...this.boxes.values()].filter((box) => box.size > 0).sort((a, b) => last(a) - last(b) || b.size - a.size || (a.name < b.name ? -1 : 1));
  }
}

/** The frames that one box stands for: runs, each from its innermost node up to its outermost. */
class FrameRuns {
  constructor() {
    this.runs = [];
    this.known = null;
  }
  add(inner, outer, length, [old, now]) {
    this.runs.push({ inner, outer, length, weight: old + now });
  }
  /** The weight of each method. */
  methods() {
    if (this.known) return this.known;
    const weights = new Map();
    const outers = new Set();
    for (const { inner, outer, weight } of this.runs) {
      outers.add(outer);
      for (let at = inner; !weights.has(at); at = tree.parent[at]) {
        weights.set(at, 0);
        if (at === outer) break;
      }
      weights.set(inner, weights.get(inner) + weight);
    }
    this.known = new Map();
    // Callees come behind their callers.
    for (const node of [...weights.keys()].sort((a, b) => b - a)) {
      const [method, weight] = [tree.method[node], weights.get(node)];
      if (method !== REST) this.known.set(method, (this.known.get(method) || 0) + weight);
      if (!outers.has(node)) weights.set(tree.parent[node], weights.get(tree.parent[node]) + weight);
    }
    return this.known;
  }
  get name() {
    const least = this.runs.reduce((least, { length }) => Math.min(least, length), Infinity);
    const most = this.runs.reduce((most, { length }) => Math.max(most, length), 0);
    const weights = new Map();
    let isJdk = true;
    for (const [method, weight] of this.methods()) {
      const isOfJdk = data.classOrigins[data.methods.owner[method]] === "j";
      isJdk = isJdk && isOfJdk;
      const name = libraryName(method);
      // Libraries say more than the JDK below and above them.
      weights.set(name, (weights.get(name) || 0) + weight * (isOfJdk ? 1e-6 : 1));
    }
    const names = [...weights].sort((a, b) => b[1] - a[1]).map(([name]) => name);
    // Of sums the frames are not known.
    if (names.length === 0) return "(rest)";
    const shown = names.slice(0, 2).join(", ") + (names.length > 2 ? ", …" : "");
    return `… ${least === most ? most : `${least}–${most}`} ${isJdk ? "JDK" : "library"} frames (${shown})`;
  }
}

function isType(box) {
  return typeof box.key === "string" && box.key.startsWith("type ");
}

/** From the entry of the threads to the events. */
class Down {
  constructor(weights, options) {
    this.weights = weights;
    this.options = options;
  }
  root() {
    const root = new Box(null, "all", "all");
    root.take(0, this.weights.whole(0));
    return root;
  }
  /** What the outermost frames of a method lead to. */
  rootOf(method) {
    const root = new Box(null, method, methodName(method));
    const inside = new Uint8Array(tree.size);
    for (let node = 1; node < tree.size; node++) {
      const above = inside[tree.parent[node]];
      const is = tree.method[node] === method;
      inside[node] = above || is ? 1 : 0;
      if (is && !above) root.take(node, this.weights.whole(node));
    }
    return root;
  }
  children(box) {
    const group = new Group(box);
    if (isType(box)) return [];
    if (box.next) {
      for (const [node, weight] of box.next) {
        const next = group.method(tree.method[node]);
        if (isOwn(tree.method[node])) next.take(node, weight);
        else next.end(node, weight);
      }
      if (this.options.leaf) for (const node of box.ends) this.types(node, group);
      return group.sorted();
    }
    const queue = box.nodes.slice();
    while (queue.length > 0) {
      const node = queue.pop();
      for (let at = children.first[node]; at < children.first[node + 1]; at++) {
        const child = children.list[at];
        const method = tree.method[child];
        if (this.options.fold && method === box.key && method !== REST) {
          queue.push(child);
          continue;
        }
        const weight = this.weights.whole(child);
        if (weight[0] + weight[1] === 0) continue;
        if (this.options.short && !isOwn(method)) this.shorten(child, group);
        else group.method(method).take(child, weight);
      }
      if (this.options.leaf) this.types(node, group);
    }
    return group.sorted();
  }
  /** Gives what happened below a node that is not own code to the boxes of the group. */
  shorten(outer, group) {
    const first = tree.method[outer];
    // The box that so many frames have before the one that is shown below them.
    const before = (frames) => (frames === 1 ? group.method(first) : group.run());
    const visit = [[outer, 1]];
    while (visit.length > 0) {
      const [node, depth] = visit.pop();
      const self = this.weights.self(node);
      if (self[0] + self[1] > 0) {
        if (depth === 1) group.method(first).end(node, self);
        else this.lead(before(depth - 1), outer, node, depth - 1, self);
      }
      for (let at = children.first[node]; at < children.first[node + 1]; at++) {
        const child = children.list[at];
        const weight = this.weights.whole(child);
        if (weight[0] + weight[1] === 0) continue;
        if (isOwn(tree.method[child])) this.lead(before(depth), outer, child, depth, weight);
        else visit.push([child, depth + 1]);
      }
    }
  }
  lead(box, outer, next, frames, weight) {
    box.lead(next, weight);
    if (box.run) box.run.add(tree.parent[next], outer, frames, weight);
  }
  types(node, group) {
    for (let at = contextsAt.first[node]; at < contextsAt.first[node + 1]; at++) {
      const context = contextsAt.list[at];
      const weight = this.weights.context(context);
      if (weight[0] + weight[1] > 0) group.type(contexts.type[context]).take(node, weight);
    }
  }
}

/** From the events to the entry of the threads. */
class Up {
  constructor(weights, options) {
    this.weights = weights;
    this.options = options;
  }
  root() {
    const root = new Box(null, "all", "all");
    [root.old, root.now] = this.weights.whole(0);
    root.first = (group) => {
      if (this.options.leaf) {
        contexts.node.forEach((node, context) => {
          const weight = this.weights.context(context);
          if (weight[0] + weight[1] > 0) {
            const box = group.type(contexts.type[context]);
            box.take(node, weight);
            box.stays = true;
          }
        });
        return;
      }
      for (let node = 1; node < tree.size; node++) {
        const weight = this.weights.self(node);
        if (weight[0] + weight[1] > 0) group.method(tree.method[node]).take(node, weight);
      }
    };
    return root;
  }
  rootOf(method) {
    const callees = new Down(this.weights, this.options).rootOf(method);
    const root = new Box(null, method, callees.name);
    callees.nodes.forEach((node, at) => root.take(node, [callees.olds[at], callees.nows[at]]));
    return root;
  }
  children(box) {
    const group = new Group(box);
    if (box.first) {
      box.first(group);
      return group.sorted();
    }
    box.nodes.forEach((node, at) => {
      let next = box.stays ? node : tree.parent[node];
      while (this.options.fold && next > 0 && tree.method[next] === box.key && box.key !== REST) next = tree.parent[next];
      if (next <= 0) return;
      const weight = [box.olds[at], box.nows[at]];
      let length = 0;
      // The frame of the event itself is always shown.
      if (this.options.short && !box.stays) {
        const inner = next;
        let outer = next;
        for (; next > 0 && !isOwn(tree.method[next]); next = tree.parent[next]) {
          outer = next;
          length++;
        }
        if (length > 1) {
          const run = group.run();
          run.take(outer, weight);
          run.run.add(inner, outer, length, weight);
          return;
        }
        if (length === 1) next = outer;
      }
      group.method(tree.method[next]).take(next, weight);
    });
    return group.sorted();
  }
}

function hashOf(text) {
  let hash = 7;
  for (let at = 0; at < text.length; at++) hash = (hash * 31 + text.charCodeAt(at)) | 0;
  return hash >>> 0;
}

/** Boxes by size, the largest first; of equal ones that which is nearer to the root. */
class LargestFirst {
  constructor() {
    this.heap = [];
  }
  get size() {
    return this.heap.length;
  }
  isBefore(a, b) {
    return a.size > b.size || (a.size === b.size && a.depth < b.depth);
  }
  push(box) {
    const { heap } = this;
    let at = heap.length;
    for (let parent = (at - 1) >> 1; at > 0 && this.isBefore(box, heap[parent]); parent = (at - 1) >> 1) {
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = box;
  }
  pop() {
    const { heap } = this;
    const [first] = heap;
    const box = heap.pop();
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child + 1 < heap.length && this.isBefore(heap[child + 1], heap[child])) child++;
      if (child >= heap.length || !this.isBefore(heap[child], box)) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = box;
    return first;
  }
}

/** A canvas with one graph. */
class FlameView {
  constructor(label, graph, root, options) {
    this.graph = graph;
    this.root = root;
    this.zoom = root;
    this.focus = root;
    this.options = options;
    this.rects = [];
    this.view = { from: 0, to: 1 };
    this.element = document.createElement("div");
    this.element.className = "flame";
    this.space = document.createElement("div");
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "flame graph");
    this.canvas.setAttribute("aria-label", label + ". Arrow keys move, Enter zooms in, Escape zooms out, S shows callers and callees, C copies the stack, F folds and unfolds libraries, N and Shift+N go through matches.");
    this.canvas.style.position = "sticky";
    this.canvas.style.top = "0";
    this.space.append(this.canvas);
    this.element.append(this.space);
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => tip.hide());
    this.canvas.addEventListener("click", (event) => {
      const box = this.at(event);
      if (box) this.zoomTo(box);
    });
    this.element.addEventListener("scroll", () => this.paint());
    this.resize = new ResizeObserver(() => this.layout());
    this.resize.observe(this.element);
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.resize.disconnect();
    tip.hide();
  }

  /** What is shown of the graph, by names: other data have other boxes. */
  kept() {
    return { zoom: this.names(this.zoom), focus: this.names(this.focus), scroll: this.element.scrollTop };
  }

  restore({ zoom, focus, scroll }) {
    this.zoom = this.find(zoom);
    this.focus = this.find(focus);
    this.view = this.range(this.zoom);
    this.layout();
    this.element.scrollTop = scroll;
    this.paint();
  }

  names(box) {
    const names = [];
    for (let at = box; at.parent; at = at.parent) names.unshift(this.place(at));
    return names;
  }

  /** The name of a box among its siblings, which other data have, too. */
  place(box) {
    return box.isSeveral ? box.key : box.name;
  }

  /** The box with these names from the root on, as far as there are such boxes. */
  find(names) {
    let box = this.root;
    for (const name of names) {
      const next = this.list(box).find((child) => this.place(child) === name);
      if (!next) break;
      box = next;
    }
    return box;
  }

  list(box) {
    if (box.list === null) {
      box.list = this.graph.children(box);
      if (box === this.root && this.graph instanceof Down && this.graph.options.short) box.list = box.list.map((child) => this.trunk(child));
      let at = 0;
      for (const child of box.list) {
        child.start = at;
        at += child.size;
      }
    }
    return box.list;
  }

  /** One box in place of a chain of boxes that have one child each; the last one, which has several or none, is below it. */
  trunk(box) {
    const chain = [box];
    let last = box;
    for (;;) {
      const list = this.graph.children(last);
      if (list.length !== 1 || list[0].size !== last.size || list[0].key === REST || isType(list[0])) break;
      [last] = list;
      chain.push(last);
    }
    chain.pop();
    if (chain.length < 2) return box;
    const trunk = new Box(box.parent, TRUNK, `${chain[0].name} … ${chain[chain.length - 1].name} (${chain.length} calls)`);
    Object.assign(trunk, { old: box.old, now: box.now, chain, list: [last] });
    Object.assign(last, { parent: trunk, depth: trunk.depth + 1, start: 0, list: null });
    return trunk;
  }

  /** The boxes that match the search, the largest first. */
  matches() {
    const hit = this.nodesToMatches();
    const found = [];
    // No box is larger than the one above it: the largest that is known comes next.
    const next = new LargestFirst();
    next.push(this.root);
    while (next.size > 0 && found.length < MOST_MATCHES) {
      const box = next.pop();
      if (this.options.matches(box) === true) found.push(box);
      if (!box.isSeveral && box.nodes.length > 0 && !box.nodes.some((node) => hit[node] === 1)) continue;
      for (const child of this.list(box)) next.push(child);
    }
    return found;
  }

  /** The nodes with a match at or beyond them, in the graph's direction. */
  nodesToMatches() {
    const { matchesMethod, matchesType } = this.options;
    const hit = new Uint8Array(tree.size);
    for (let node = 1; node < tree.size; node++) hit[node] = matchesMethod(tree.method[node]) ? 1 : 0;
    if (this.graph instanceof Up) {
      for (let node = 1; node < tree.size; node++) hit[node] |= hit[tree.parent[node]];
      return hit;
    }
    if (this.graph.options.leaf) contexts.node.forEach((node, context) => { if (matchesType(contexts.type[context])) hit[node] = 1; });
    for (let node = tree.size - 1; node > 0; node--) hit[tree.parent[node]] |= hit[node];
    return hit;
  }

  /** Shows a box: scrolls to it, and zooms if it is too narrow to be read or outside of what is shown. */
  jump(box) {
    const { from, to } = this.range(box);
    const width = (view) => ((to - from) / (view.to - view.from || 1)) * Math.max(100, this.element.clientWidth);
    const shown = this.range(this.zoom);
    const isInside = from >= shown.from - 1e-9 && to <= shown.to + 1e-9 && box.depth >= this.zoom.depth;
    if (!isInside || width(shown) < READABLE) {
      cancelAnimationFrame(this.frame);
      this.zoom = width({ from: 0, to: 1 }) < READABLE ? box : this.root;
      this.view = this.range(this.zoom);
      this.layout();
    }
    this.move(box);
  }

  /** Where the box lies, of the root's width. */
  range(box) {
    const path = [];
    for (let at = box; at.parent; at = at.parent) path.push(at);
    let from = 0;
    for (const at of path) from += at.start;
    const whole = this.root.size || 1;
    return { from: from / whole, to: (from + box.size) / whole };
  }

  zoomTo(box) {
    this.zoom = box;
    this.focus = box;
    const target = this.range(box);
    const source = this.view;
    const began = performance.now();
    cancelAnimationFrame(this.frame);
    const step = (now) => {
      const done = matchMedia("(prefers-reduced-motion: reduce)").matches ? 1 : Math.min(1, (now - began) / 180);
      const part = 1 - (1 - done) * (1 - done);
      this.view = { from: source.from + (target.from - source.from) * part, to: source.to + (target.to - source.to) * part };
      this.layout();
      if (done < 1) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
    this.tell(box);
    this.options.zoomed(box);
  }

  layout() {
    const width = Math.max(100, this.element.clientWidth);
    const scale = width / (this.view.to - this.view.from || 1);
    const whole = this.root.size || 1;
    this.rects = [];
    let deepest = 0;
    const visit = [[this.root, 0]];
    while (visit.length > 0) {
      const [box, at] = visit.pop();
      const left = (at / whole - this.view.from) * scale;
      const wide = (box.size / whole) * scale;
      if (left > width || left + wide < 0) continue;
      const x = Math.max(0, left);
      const w = Math.min(width, left + wide) - x;
      this.rects.push({ box, x, w });
      deepest = Math.max(deepest, box.depth);
      if (wide < NARROW) continue;
      for (const child of this.list(box)) {
        const size = (child.size / whole) * scale;
        const from = ((at + child.start) / whole - this.view.from) * scale;
        if (from > width) break;
        if (size < NARROW) {
          // What follows is narrower still: one box for all of them, which is not gone into. The last one may be wide.
          const last = box.list[box.list.length - 1];
          const isWide = last !== child && (last.size / whole) * scale >= NARROW;
          const end = isWide ? last.start : last.start + last.size;
          const rest = Math.min(width, left + (end / whole) * scale) - Math.max(0, from);
          if (rest > 0.2) this.rects.push({ box: child, x: Math.max(0, from), w: rest, merged: true });
          deepest = Math.max(deepest, child.depth);
          if (isWide) visit.push([last, at + last.start]);
          break;
        }
        visit.push([child, at + child.start]);
      }
    }
    this.width = width;
    this.rows = deepest + 1;
    const high = this.rows * ROW + 2 + "px";
    if (this.space.style.height !== high) this.space.style.height = high;
    this.paint();
  }

  paint() {
    const high = Math.min(this.rows * ROW + 2, Math.max(60, Math.round(innerHeight * 0.74)));
    const ratio = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(this.width * ratio) || this.canvas.height !== Math.round(high * ratio)) {
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(high * ratio);
      this.canvas.style.width = this.width + "px";
      this.canvas.style.height = high + "px";
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, high);
    pen.font = "12px ui-monospace, monospace";
    pen.textBaseline = "middle";
    const above = this.element.scrollTop;
    const letter = pen.measureText("m").width;
    const dark = isDark();
    for (const { box, x, w, merged } of this.rects) {
      const y = box.depth * ROW - above;
      if (y + ROW < 0 || y > high) continue;
      pen.fillStyle = this.colour(box, merged, dark);
      pen.fillRect(x, y + 1, Math.max(0.3, w - 0.6), ROW - 1);
      if (box === this.focus) {
        pen.strokeStyle = dark ? "#fff" : "#000";
        pen.lineWidth = 1.5;
        pen.strokeRect(x + 0.75, y + 1.75, Math.max(0.5, w - 2), ROW - 2.5);
      }
      if (w > 28 && !merged) {
        pen.fillStyle = dark ? "#f3f3f0" : "#111";
        pen.fillText(fitting(box.name, Math.floor((w - 6) / letter)), x + 3, y + ROW / 2 + 1);
      }
    }
  }

  colour(box, merged, dark) {
    const found = this.options.matches(box);
    if (found === true) return dark ? "#c2187a" : "#f06bb4";
    const pale = found === false;
    if (merged || box.key === REST) return dark ? "#3c3d3f" : "#dddcd6";
    if (this.options.difference) {
      const change = box.size === 0 ? 0 : (box.now * this.options.scale.now - box.old * this.options.scale.old) / (box.now * this.options.scale.now + box.old * this.options.scale.old || 1);
      return colourOfChange(change, dark, pale);
    }
    if (typeof box.key === "string" && !box.isSeveral) return dark ? (pale ? "#26302a" : "#2d5a3d") : pale ? "#eef4ef" : "#bfe3c8";
    return box.tint(dark, pale);
  }

  at(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const depth = Math.floor((event.clientY - bounds.top + this.element.scrollTop) / ROW);
    const hit = this.rects.find((rect) => rect.box.depth === depth && x >= rect.x && x < rect.x + rect.w && !rect.merged);
    return hit ? hit.box : null;
  }

  hover(event) {
    const box = this.at(event);
    this.canvas.style.cursor = box ? "pointer" : "default";
    if (box) tip.show(this.describe(box), event);
    else tip.hide();
  }

  describe(box) {
    const { unit, difference, scale, self } = this.options;
    if (difference) {
      const [old, now] = [box.old * scale.old, box.now * scale.now];
      const change = now - old;
      const part = old === 0 ? "new" : (change > 0 ? "+" : "") + ((100 * change) / old).toFixed(1) + "%";
      return `${box.name}\nold ${human(old, unit)}, new ${human(now, unit)}: ${change > 0 ? "+" : ""}${human(change, unit)} (${part})`;
    }
    const own = self(box, this);
    const shown = box.now * scale.now;
    const text = `${box.name}${this.note(box)}\n${human(shown, unit)}, ${percent(box.now, this.root.now)} of all, ${grouped(shown)} exactly`;
    return own === null ? text : text + `\nof that in itself ${human(own * scale.now, unit)}`;
  }

  /** What a box with several frames holds. */
  note(box) {
    if (!box.isSeveral) return "";
    const names = box.methods().slice(0, 12).map(methodName);
    return "\n" + names.join("\n") + (box.methods().length > names.length ? "\n…" : "") + "\nF shows all frames";
  }

  tell(box) {
    say(this.describe(box).replaceAll("\n", ": "));
  }

  stack(box) {
    const names = [];
    for (let at = box; at && at.parent; at = at.parent) names.push(at.name);
    return (this.graph instanceof Up ? names.reverse() : names).map((name) => "\tat " + name).join("\n");
  }

  move(box) {
    if (!box) return;
    this.focus = box;
    const y = box.depth * ROW;
    if (y < this.element.scrollTop || y + ROW > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = Math.max(0, y - this.element.clientHeight / 2);
    this.paint();
    this.tell(box);
  }

  sibling(by) {
    const list = this.focus.parent ? this.list(this.focus.parent) : [];
    return list[list.indexOf(this.focus) + by];
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      ArrowUp: () => this.move(this.focus.parent),
      ArrowDown: () => this.move(this.list(this.focus)[0]),
      ArrowLeft: () => this.move(this.sibling(-1)),
      ArrowRight: () => this.move(this.sibling(1)),
      Home: () => this.move(this.root),
      Enter: () => this.zoomTo(this.focus),
      Backspace: () => this.zoomTo(this.zoom.parent || this.root),
      Escape: () => this.zoomTo(this.root),
      s: () => typeof this.focus.key === "number" && this.focus.key !== REST && this.options.sandwich(this.focus.key),
      c: () => copy(this.stack(this.focus)),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

/** `change`: from -1, gone, to 1, new. By its root, and coloured before it is dark, so that a few percent are seen beside nothing. */
function colourOfChange(change, dark, pale) {
  const strength = Math.sqrt(Math.min(1, Math.abs(change))) * (pale ? 0.4 : 1);
  const coloured = Math.min(1, 4 * strength);
  const hue = change > 0 ? 4 : 216;
  return dark ? `hsl(${hue} ${Math.round(75 * coloured)}% ${Math.round(30 + 12 * strength)}%)` : `hsl(${hue} ${Math.round(85 * coloured)}% ${Math.round(90 - 24 * strength)}%)`;
}

/** A name in so many letters: without its package, without its class, or cut. Folded frames are no name, and are cut. */
function fitting(name, letters) {
  if (name.length <= letters) return name;
  const parts = name.startsWith("…") ? [name] : name.split(".");
  for (let from = 1; from < parts.length; from++) {
    const short = parts.slice(from).join(".");
    if (short.length <= letters) return short;
  }
  const last = parts[parts.length - 1];
  return letters < 3 ? "" : last.slice(0, letters - 1) + "…";
}
