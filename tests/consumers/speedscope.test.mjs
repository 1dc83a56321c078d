// What `lucce export --format speedscope` writes, in speedscope's own page in Chromium. `cargo xtask format-tests` starts
// it with these in the environment:
//   FILE        what was exported
//   ALLOCATED   the bytes that `lucce report` says of alloc; DELAY: the nanoseconds of lock
//   SPEEDSCOPE  the folder of speedscope's page
//   CHROMIUM    the browser
//   PLAYWRIGHT  where playwright-core is installed
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";

const { FILE, ALLOCATED, DELAY, SPEEDSCOPE, CHROMIUM, PLAYWRIGHT } = process.env;
const { chromium } = createRequire(PLAYWRIGHT + "/")("playwright-core");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };

let browser;
let page;
let server;
const wrong = [];

before(async () => {
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const file = pathname === "/profile.json" ? FILE : join(SPEEDSCOPE, normalize(pathname));
    response.setHeader("content-type", TYPES[extname(file)] ?? "application/octet-stream");
    response.end(readFileSync(file));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("dialog", async (dialog) => { wrong.push(dialog.message()); await dialog.dismiss(); });
  const home = `http://127.0.0.1:${server.address().port}`;
  await page.goto(`${home}/index.html#profileURL=${encodeURIComponent(`${home}/profile.json`)}`);
});

after(async () => {
  await browser?.close();
  server?.close();
});

test("the file is what its schema wants, and adds up", () => {
  const schema = JSON.parse(readFileSync(join(SPEEDSCOPE, "file-format-schema.json"), "utf8"));
  const file = JSON.parse(readFileSync(FILE, "utf8"));
  assert.equal(file.$schema, "https://www.speedscope.app/file-format-schema.json");
  assert.ok(schema.definitions["FileFormat.EventedProfile"], "the schema knows evented profiles");
  assert.equal(file.profiles.find((profile) => profile.name === "alloc: bytes").endValue, Number(ALLOCATED));
  assert.equal(file.profiles.find((profile) => profile.name === "lock: time").endValue, Number(DELAY));
  const { required } = schema.definitions["FileFormat.EventedProfile"];
  for (const profile of file.profiles) {
    for (const key of required) assert.ok(key in profile, key);
    const open = [];
    let last = profile.startValue;
    for (const { type, frame, at } of profile.events) {
      assert.ok(at >= last && file.shared.frames[frame]);
      last = at;
      if (type === "O") open.push(frame);
      else assert.equal(open.pop(), frame);
    }
    assert.equal(open.length, 0);
    assert.equal(last, profile.endValue);
  }
});

test("the page shows the profile that is shown first, and the heaviest method", async () => {
  await page.getByText("alloc: bytes", { exact: false }).first().waitFor({ timeout: 60_000 });
  await page.getByText("Sandwich", { exact: false }).first().click();
  await page.getByText("Shop.tree", { exact: true }).first().waitFor({ timeout: 60_000 });
  const text = await page.locator("body").innerText();
  for (const part of ["Shop.tree", "Shop.orders"]) assert.ok(text.includes(part), `${part} in ${text}`);
  assert.deepEqual(wrong, []);
});
