// Tables that are sorted by a click on a column's head, narrowed by the search, and lengthened on demand.
"use strict";

const PAGE = 100;

/** How the tables that are shown are sorted and lengthened, in the order in which they were made. */
let tables = [];
/** How those before them were that are to look alike; null: tables begin anew. */
let earlier = null;

function element(name, attributes, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...content.filter((part) => part !== null && part !== undefined));
  return made;
}

/**
 * `filter(row)`: the text that the page's search looks in; `also(search)`: a function that tells whether a row matches apart from that.
 * Rows with `isLast` come last in every order; `isOwn`: own code.
 * `columns`: { head, of(row): what is sorted by, shown(row): text or element, isNumber, isName, isText: long texts, which wrap }.
 * `details(row)`: what a click on the row shows below it, or null.
 */
function table(rows, columns, { by = 0, details = null, filter = null, also = null, caption } = {}) {
  const state = { by, down: columns[by].isNumber === true, shown: PAGE, ...earlier?.[tables.length] };
  tables.push(state);
  const body = element("tbody");
  const note = element("p", { class: "note", role: "status" });
  const more = element("button", { type: "button", "data-more": filter !== null, onclick: () => { state.shown += 10 * PAGE; draw(); } }, "Show more");
  const heads = columns.map((column, at) => {
    const press = () => {
      state.down = state.by === at ? !state.down : column.isNumber === true;
      state.by = at;
      draw();
    };
    return element("th", { class: column.isNumber ? "n" : null, scope: "col" }, element("button", { type: "button", onclick: press }, column.head));
  });

  function draw() {
    const { of } = columns[state.by];
    const sign = state.down ? -1 : 1;
    // The page's search selects rows. Of a text that is no regular expression all rows are shown, and that is told.
    const search = pattern(filter ? searchText() : "");
    const isSearch = filter !== null && search !== null && searchText() !== "";
    const isOther = isSearch && also ? also(search) : () => false;
    const selected = isSearch ? rows.filter((row) => isOther(row) || search.test(filter(row))) : rows;
    const inOrder = (some) => some.map((row) => [of(row), row]).sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
    const keyed = [...inOrder(selected.filter((row) => !row.isLast)), ...inOrder(selected.filter((row) => row.isLast))];
    heads.forEach((head, at) => head.setAttribute("aria-sort", at !== state.by ? "none" : state.down ? "descending" : "ascending"));
    body.replaceChildren(...keyed.slice(0, state.shown).map(([, row]) => line(row, isSearch)));
    more.hidden = keyed.length <= state.shown;
    note.textContent = `${search ? "" : "no regular expression, so nothing is left out: "}${grouped(Math.min(state.shown, keyed.length))} of ${grouped(keyed.length)} rows${isSearch ? " that match" : ""}`;
  }

  function line(row, isMatch) {
    const cells = columns.map((column) => element("td", { class: column.isNumber ? "n" : column.isName ? "name" : column.isText ? "text" : null }, column.shown(row)));
    const made = element("tr", { class: row.isOwn ? "own" : null, "data-match": isMatch }, ...cells);
    if (details) {
      const target = cells.find((cell) => cell.className === "name") || cells[0];
      const open = () => {
        const next = made.nextElementSibling;
        const isOpen = next && next.dataset.details === "yes";
        press.setAttribute("aria-expanded", isOpen ? "false" : "true");
        if (isOpen) next.remove();
        else made.after(element("tr", { "data-details": "yes" }, element("td", { colspan: columns.length }, details(row))));
      };
      const press = element("button", { type: "button", class: "link", "aria-expanded": "false", onclick: open }, ...target.childNodes);
      target.replaceChildren(press);
    }
    return made;
  }

  const box = element("div", {});
  note.hidden = !filter && rows.length <= PAGE;
  box.append(note);
  box.append(element("div", { class: "wide" }, element("table", {}, caption ? element("caption", {}, caption) : null, element("thead", {}, element("tr", {}, ...heads)), body)), more);
  draw();
  return box;
}

/** A regular expression, or null if the text is none yet. */
function pattern(text) {
  try {
    return new RegExp(text, "i");
  } catch {
    return null;
  }
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages that are opened from disk may not ask for the clipboard in every browser.
    const area = element("textarea", { readonly: true });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say("copied");
}

function say(text) {
  document.getElementById("status").textContent = text;
}

function isDark() {
  return document.documentElement.classList.contains("dark");
}

const tip = (() => {
  const box = element("div", { id: "tip", hidden: true });
  document.body.append(box);
  return {
    show(text, event) {
      box.textContent = text;
      box.hidden = false;
      const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
      const below = event.clientY + 18;
      box.style.left = Math.max(4, left) + "px";
      box.style.top = (below + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 10 : below) + "px";
    },
    hide() {
      box.hidden = true;
    },
  };
})();
