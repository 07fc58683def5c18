// Real Chromium for one scenario: `node browser.mjs NAME`, with what it needs as JSON on standard input. It ends with
// 0 where all was as it should be.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { chromium } from "playwright-core";
import * as scenarios from "./scenarios.mjs";

const scenario = scenarios[process.argv[2]];
const given = await json(process.stdin);
const profile = await mkdtemp(join(tmpdir(), "rag-playground-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: given.chromium,
  headless: true,
  viewport: { width: 1360, height: 860 },
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  ...given.options,
});
context.setDefaultTimeout(20_000);
try {
  const page = context.pages()[0];
  const faults = [];
  page.on("pageerror", (raised) => faults.push(raised.stack));
  // What the policy forbade is said here.
  page.on("console", (said) => said.type() === "error" && /Content Security Policy|TrustedHTML/.test(said.text()) && faults.push(said.text()));
  page.on("dialog", (asked) => asked.accept());
  await scenario(page, given);
  assert.deepEqual(faults, []);
} finally {
  await context.close();
  await rm(profile, { recursive: true, force: true });
}
