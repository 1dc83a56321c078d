// The page of a JVM that runs: newer data come from where the page came from, and what a person looks at stays where it is.
"use strict";

/** So many milliseconds after a key or a click nothing changes under the hand. */
const HANDS_OFF = 1500;

const live = { paused: false, touched: -HANDS_OFF, waiting: null, gone: "" };

function goLive() {
  const pause = document.getElementById("pause");
  pause.hidden = false;
  pause.addEventListener("click", () => {
    live.paused = !live.paused;
    tellLive();
  });
  for (const event of ["pointerdown", "keydown", "wheel"]) {
    addEventListener(event, () => { live.touched = performance.now(); }, { capture: true, passive: true });
  }
  tellLive();
  if (!data.live.ended) setTimeout(renew, data.live.pause);
}

/** What keeps newer data from being shown; empty: nothing does. */
function standsStill() {
  if (live.paused) return "paused";
  if (document.querySelector("#main tr[data-details]")) return "stands still while a trace is open";
  return performance.now() - live.touched < HANDS_OFF ? "stands still while you work in it" : "";
}

async function renew() {
  // A page that is not looked at asks for nothing, so nothing is read.
  if (!document.hidden && !live.paused && !live.waiting) {
    try {
      await ask();
      live.gone = "";
    } catch (error) {
      live.gone = "lucce serve does not answer: " + error.message;
    }
  }
  if (live.waiting && standsStill() === "") {
    const said = live.waiting;
    live.waiting = null;
    show(said);
  }
  tellLive();
  if (live.waiting) setTimeout(renew, 300);
  else if (!data.live.ended) setTimeout(renew, data.live.pause);
}

async function ask() {
  const answer = await fetch("data?after=" + data.live.reading, { cache: "no-store" });
  if (answer.status === 200) live.waiting = await answer.json();
  else if (answer.status !== 204) throw new Error((await answer.text()).trim());
}

function tellLive() {
  document.getElementById("pause").textContent = live.paused ? "Go on" : "Pause";
  const text = live.gone || (data.live.ended ? "the JVM has ended: this is all" : standsStill() || `live, every ${human(data.live.pause * 1e6, "ns")}`);
  document.getElementById("live").textContent = text;
}

/** Shows other data of the run, in the same way as those before. */
function show(said) {
  const kept = keep();
  take(said);
  initial = start();
  cached = { key: "", sums: [], kinds: [] };
  Object.assign(state, kept.places());
  history.replaceState(null, "", "#" + fragment());
  earlier = kept.tables;
  draw();
  earlier = null;
  kept.restore();
}

/** What a person has chosen, by names and times, and where on the page they are. */
function keep() {
  const main = document.getElementById("main");
  const within = () => [...main.querySelectorAll("button, input, select, canvas, pre")];
  const active = document.activeElement;
  const at = within().indexOf(active);
  const selected = active && active.type === "search" ? [active.selectionStart, active.selectionEnd] : null;
  const names = Object.entries(NAMED).filter(([key]) => state[key] >= 0).map(([key, [, name]]) => [key, name(state[key])]);
  const views = open && open.views ? open.views.map((view) => view.kept()) : [];
  const place = [scrollX, scrollY];
  const line = data.stream;
  const time = (step) => line.start + step * line.width;
  const times = line && state.from >= 0 ? [time(state.from), time(state.to)] : null;
  return {
    tables,
    places: () => {
      const places = Object.fromEntries(names.map(([key, name]) => [key, placeOf(key, name) ?? initial[key]]));
      if (!times || !data.stream) return places;
      const step = (at) => Math.max(0, Math.min(data.stream.count - 1, Math.round((at - data.stream.start) / data.stream.width)));
      return { ...places, from: step(times[0]), to: step(times[1]) };
    },
    restore: () => {
      if (open && open.views) open.views.forEach((view, number) => views[number] && view.restore(views[number]));
      const next = at >= 0 ? within()[at] : active && active.id ? document.getElementById(active.id) : null;
      if (next) next.focus({ preventScroll: true });
      if (next && selected) next.setSelectionRange(...selected);
      scrollTo(...place);
    },
  };
}
