// What the page is about: the tree of frames, the contexts in it, and sums over them.
//
// Data arrive as columns. Node 0 is the root; a node's parent stands before it. A node whose method is
// -1 stands for all that lay below its parent and was too small to be shown one by one.
"use strict";

const REST = -1;
let data;
let tree;
let contexts;
let shares;
/** The children of every node, as a range of `list`: of node n, from `first[n]` up to `first[n + 1]`. */
let children;
/** The contexts of every node, as ranges of `list` as in `children`. */
let contextsAt;
/** Of each context, whether a thread waits for work there. */
let isIdle;
/** Of each method, whether it is the program's own code. */
let ownMethods;
/** Of each node, the innermost and the outermost node with own code from the root down to it; 0: there is none. */
let innermostOwn;
let outermostOwn;
/** Whether own code can be told from other code: both are in the stacks. */
let hasOwn;
/** Of nodes that were shown, the frame's text. */
let frameTexts;
/** Threads whose names differ in digits only, as `{ name, members }`; a group's number comes after those of all threads. */
let threadGroups;
/** Of each thread, its group's number, or its own. */
let groupOfThread;

/** Makes these data the ones that are shown. */
function take(said) {
  data = said;
  tree = {
    parent: Int32Array.from(data.nodes.parent),
    method: Int32Array.from(data.nodes.method),
    line: Int32Array.from(data.nodes.line),
    size: data.nodes.parent.length,
  };
  contexts = data.contexts;
  shares = data.shares;
  children = ranges(tree.size, tree.parent, 1);
  contextsAt = ranges(tree.size, contexts.node, 0);
  isIdle = new Uint8Array(contexts.node.length);
  for (const context of contexts.idle) isIdle[context] = 1;
  frameTexts = [];
  findOwnCode();
  groupThreads();
}

function findOwnCode() {
  const origins = data.classOrigins ?? "";
  ownMethods = Uint8Array.from(data.methods.owner, (owner) => (origins[owner] === "a" ? 1 : 0));
  innermostOwn = new Int32Array(tree.size);
  outermostOwn = new Int32Array(tree.size);
  const seen = [false, false];
  for (let node = 1; node < tree.size; node++) {
    const [parent, method] = [tree.parent[node], tree.method[node]];
    const own = isOwn(method);
    innermostOwn[node] = own ? node : innermostOwn[parent];
    outermostOwn[node] = outermostOwn[parent] || (own ? node : 0);
    if (method !== REST) seen[own ? 1 : 0] = true;
  }
  hasOwn = seen[0] && seen[1];
}

function isOwn(method) {
  return method >= 0 && ownMethods[method] === 1;
}

/** Groups the threads of a pool; digits that all of them have stay in the group's name. */
function groupThreads() {
  const digits = /\d+|\*/g;
  const byText = new Map();
  data.threads.forEach((name, thread) => {
    const text = name.replace(digits, "*");
    byText.set(text, [...(byText.get(text) || []), thread]);
  });
  threadGroups = [];
  groupOfThread = Int32Array.from(data.threads, (_, thread) => thread);
  for (const members of byText.values()) {
    if (members.length < 2) continue;
    const numbers = members.map((thread) => data.threads[thread].match(digits));
    let at = -1;
    const name = data.threads[members[0]].replace(digits, (text) => {
      at++;
      return numbers.every((own) => own[at] === text) ? text : "*";
    });
    for (const thread of members) groupOfThread[thread] = data.threads.length + threadGroups.length;
    threadGroups.push({ name, members });
  }
}

function threadName(thread) {
  return data.threads[thread] ?? threadGroups[thread - data.threads.length].name;
}

/** Whether a thread is the chosen one, or in the chosen group; -1: all are. */
function isOfThread(chosen, thread) {
  return chosen < 0 || thread === chosen || groupOfThread[thread] === chosen;
}

/** The request of a share, as a place among all requests. */
function requestOf(share) {
  return shares.tag ? data.tagRequests[shares.tag[share]] : 0;
}

/** Whether a share has the chosen tags and request; without a choice all do. */
function isTagged({ tag = -1, request = -1 }, share) {
  return (tag < 0 || !shares.tag || shares.tag[share] === tag) && (request < 0 || requestOf(share) === request);
}

/** Places of `of`, from `start` on, by the number that stands there. */
function ranges(size, of, start) {
  const first = new Int32Array(size + 1);
  for (let at = start; at < of.length; at++) first[of[at] + 1]++;
  for (let at = 0; at < size; at++) first[at + 1] += first[at];
  const list = new Int32Array(Math.max(0, of.length - start));
  const next = first.slice();
  for (let at = start; at < of.length; at++) list[next[of[at]]++] = at;
  return { first, list };
}

take(JSON.parse(document.getElementById("data").textContent));

/** What frames say that no program has, as in texts. */
const MARKERS = new Map([
  ["assembled", "(assembled at)"],
  ["unknownCaller", "(caller not known)"],
  ["threadCaller", "(caller not known, frames of the thread follow)"],
]);

function markerText(method) {
  return className(method) === "java.lang.LucceRt$Tasks" ? MARKERS.get(data.methods.name[method]) : undefined;
}

function methodName(method) {
  if (method === REST) return "(rest)";
  return markerText(method) ?? className(method) + "." + data.methods.name[method];
}

function className(method) {
  return method === REST ? "(rest)" : data.classes[data.methods.owner[method]];
}

function packageName(method) {
  const name = className(method);
  const end = name.lastIndexOf(".");
  return end < 0 ? (method === REST ? name : "(no package)") : name.slice(0, end);
}

/** A frame as the JVM prints it. */
function frameText(node) {
  return (frameTexts[node] ??= formatFrame(node));
}

function formatFrame(node) {
  const method = tree.method[node];
  if (method === REST) return "(rest: what is too small to be shown one by one)";
  const file = data.methods.file[method];
  const line = tree.line[node];
  if (line === -2) return methodName(method) + "(Native Method)";
  if (file === null) return markerText(method) ?? methodName(method) + "(Unknown Source)";
  return methodName(method) + "(" + file + (line >= 0 ? ":" + line : "") + ")";
}

/** The package of a library that people know it by: two parts, three where many projects share two. */
function libraryName(method) {
  const parts = packageName(method).split(".");
  const isShared = /^(com\.(amazonaws|github|google|ibm|microsoft|oracle|sun)|io\.github|org\.(apache|eclipse|jetbrains))$/.test(parts.slice(0, 2).join("."));
  return parts.slice(0, isShared ? 3 : 2).join(".");
}

/** The whole trace, innermost frame first. */
function traceText(node) {
  const lines = [];
  for (let at = node; at > 0; at = tree.parent[at]) lines.push("\tat " + frameText(at));
  return lines.join("\n");
}

function typeName(type) {
  return type < 0 ? "" : data.types[type];
}

/** Contexts that sums leave out, as `lucce report` does: where threads wait for work, of kinds that count time. */
function leftOut(state) {
  if (state.idle === "yes" || data.kinds[state.kind].unit !== "ns") return () => false;
  return (context) => isIdle[context] === 1;
}

/** What is summed up: the events' values or their number, of one kind, one run, one thread, under one tag, of one request. */
class Selection {
  constructor(state) {
    this.kind = state.kind;
    this.measure = state.measure;
    this.run = state.run;
    this.thread = state.thread;
    this.tag = state.tag;
    this.request = state.request;
    this.isLeftOut = leftOut(state);
  }

  /** Calls `each(context, amount)` for every share that is selected; `run` stands for the state's own. */
  visit(run, each) {
    this.visitShares(run, (share, amount) => each(shares.context[share], amount));
  }

  /** Calls `each(share, amount)` for every share that is selected. */
  visitShares(run, each) {
    const amounts = this.measure === "count" ? shares.count : shares.value;
    for (let at = 0; at < shares.context.length; at++) {
      const context = shares.context[at];
      if (contexts.kind[context] !== this.kind) continue;
      if (run !== null && shares.run[at] !== run) continue;
      if (!isTagged(this, at)) continue;
      if (!isOfThread(this.thread, shares.thread[at])) continue;
      if (this.isLeftOut(context)) continue;
      if (amounts[at] !== 0) each(at, amounts[at]);
    }
  }
}

/** Sums of a selection by node: what happened in a node itself, and in all that it called. */
class Sums {
  constructor(selection, run) {
    this.self = new Float64Array(tree.size);
    this.total = 0;
    this.wholes = null;
    this.byContext = new Float64Array(contexts.node.length);
    selection.visit(run, (context, amount) => {
      this.self[contexts.node[context]] += amount;
      this.byContext[context] += amount;
      this.total += amount;
    });
  }

  /** Of each node, with all that it called. */
  get whole() {
    if (this.wholes === null) {
      const whole = this.self.slice();
      for (let node = tree.size - 1; node > 0; node--) whole[tree.parent[node]] += whole[node];
      this.wholes = whole;
    }
    return this.wholes;
  }
}

const number = new Intl.NumberFormat("en-US");

function grouped(amount) {
  return Number.isInteger(amount) ? number.format(amount) : amount.toPrecision(4);
}

/** An amount as people say it: 4.2 GB, 1 min 27 s. */
function human(amount, unit) {
  const sign = amount < 0 ? "-" : "";
  const size = Math.abs(amount);
  if (unit === "bytes") {
    const steps = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let step = 0;
    let shown = size;
    while (shown >= 1000 && step + 1 < steps.length) {
      shown /= 1000;
      step++;
    }
    return sign + (step === 0 ? grouped(shown) : shown.toFixed(shown < 10 ? 2 : 1)) + " " + steps[step];
  }
  if (unit === "ns") {
    const seconds = size / 1e9;
    if (seconds >= 3600) return sign + Math.floor(seconds / 3600) + " h " + Math.round((seconds % 3600) / 60) + " min";
    if (seconds >= 60) return sign + Math.floor(seconds / 60) + " min " + Math.round(seconds % 60) + " s";
    if (seconds >= 1) return sign + seconds.toFixed(2) + " s";
    if (size >= 1e6) return sign + (size / 1e6).toFixed(1) + " ms";
    if (size >= 1e3) return sign + (size / 1e3).toFixed(1) + " µs";
    return sign + grouped(size) + " ns";
  }
  return sign + grouped(size) + (unit ? " " + unit : "");
}

function percent(part, whole) {
  return whole === 0 ? "" : ((100 * part) / whole).toFixed(2) + "%";
}
