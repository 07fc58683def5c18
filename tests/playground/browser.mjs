// Scenarios of scenarios.mjs and admin_scenarios.mjs, each in a new profile of a running Chromium. A line of standard
// input names one, with what it needs, as JSON; the line that answers has its error, which is empty for none.

import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import * as adminScenarios from "./admin_scenarios.mjs";
import * as scenarios from "./scenarios.mjs";

async function run(context, given) {
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (raised) => faults.push(raised.stack));
  // The browser reports here what the policy forbids.
  page.on("console", (message) => message.type() === "error" && /Content Security Policy|TrustedHTML/.test(message.text()) && faults.push(message.text()));
  page.on("dialog", (asked) => asked.accept());
  await { ...scenarios, ...adminScenarios }[given.scenario](page, given);
  assert.deepEqual(faults, []);
}

let browser;
for await (const line of createInterface({ input: process.stdin })) {
  const given = JSON.parse(line);
  browser ??= await chromium.connect(given.browser);
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 } });
  const error = await run(context, given).then(() => "", (raised) => raised.stack);
  await context.close();
  console.log(JSON.stringify(error));
}
process.exit();
