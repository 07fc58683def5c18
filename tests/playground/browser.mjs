// One scenario of scenarios.mjs or admin_scenarios.mjs in a new profile of a running Chromium: `node browser.mjs NAME`,
// with what it needs as JSON on standard input. It ends with 0 where all was as it should be.

import assert from "node:assert/strict";
import { json } from "node:stream/consumers";
import { chromium } from "playwright-core";
import * as adminScenarios from "./admin_scenarios.mjs";
import * as scenarios from "./scenarios.mjs";

const scenario = { ...scenarios, ...adminScenarios }[process.argv[2]];
const given = await json(process.stdin);
const browser = await chromium.connect(given.browser);
try {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 } });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (raised) => faults.push(raised.stack));
  // The browser reports here what the policy forbids.
  page.on("console", (message) => message.type() === "error" && /Content Security Policy|TrustedHTML/.test(message.text()) && faults.push(message.text()));
  page.on("dialog", (asked) => asked.accept());
  await scenario(page, given);
  assert.deepEqual(faults, []);
} finally {
  await browser.close();
}
