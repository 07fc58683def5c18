// What an org's admins do in the administration, and what they see.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

async function enterToken(page, token) {
  await page.getByLabel("Access token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("#desk, #admin").locator("visible=true").first().waitFor();
}

async function signIn(page, { url, token }) {
  await page.goto(url);
  await enterToken(page, token);
}

/** Wait until the page of that name is filled. */
async function waitForPage(page, title) {
  await page.locator("#admin h2").getByText(title, { exact: true }).waitFor();
  await page.locator("#admin .content").getByText("Loading …").waitFor({ state: "detached" });
}

async function open(page, given, title) {
  await signIn(page, given);
  await page.getByRole("link", { name: "Administration" }).click();
  await page.getByRole("navigation", { name: "Administration" }).getByRole("link", { name: title }).click();
  await waitForPage(page, title);
}

const admin = (page) => page.locator("#admin");
const row = (page, text) => page.locator("#admin tbody tr").filter({ hasText: text });
const waitForMessage = (page, text) => page.locator("#admin .message").getByText(text).waitFor();

/** The questions that are asked before something is changed; all are answered with yes. */
function questions(page) {
  const dialogs = [];
  page.on("dialog", (dialog) => dialogs.push(dialog.message()));
  return dialogs;
}

/** Check that no word of a table's cells is broken on a small laptop. */
async function checkWords(page) {
  await page.setViewportSize({ width: 1280, height: 800 });
  const broken = await page.locator("#admin td").evaluateAll((cells) =>
    cells.flatMap((cell) => {
      const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      const broken = [];
      while (texts.nextNode()) {
        for (const { 0: word, index } of texts.currentNode.data.matchAll(/[\w:.]+/g)) {
          const range = document.createRange();
          range.setStart(texts.currentNode, index);
          range.setEnd(texts.currentNode, index + word.length);
          if (range.getClientRects().length > 1) broken.push(word);
        }
      }
      return broken;
    }),
  );
  assert.deepEqual(broken, []);
}

export async function every_page_can_be_used_by_everybody(page, given) {
  const axe = await readFile(given.axe, "utf8");
  await signIn(page, given);
  await page.getByRole("link", { name: "Administration" }).click();
  await page.locator("#admin h2").waitFor();
  assert.equal(await page.locator("#desk").isVisible(), false);
  await page.evaluate(axe);
  const pages = await page.evaluate(() => import("/admin/pages.js").then(({ PAGES }) => PAGES.map(({ id, title }) => ({ id, title }))));
  const navigation = page.getByRole("navigation", { name: "Administration" });
  for (const [width, colorScheme] of [[1280, "light"], [360, "dark"]]) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    // The first page is open already.
    for (const { id, title } of [...pages.slice(1), pages[0]]) {
      await navigation.getByRole("link", { name: title }).focus();
      await page.keyboard.press("Enter");
      await waitForPage(page, title);
      const where = `${title}, ${width} pixels, ${colorScheme}`;
      assert.ok(await page.locator("#admin h2").evaluate((heading) => heading === document.activeElement), `focus: ${where}`);
      assert.equal(await page.locator("#admin .message").isVisible(), false, where);
      for (const text of given.shown[id] ?? []) await page.locator("#admin .content").getByText(text).first().waitFor();
      const { violations } = await page.evaluate(() => globalThis.axe.run(document));
      assert.deepEqual(violations.map((violation) => `${violation.id}: ${violation.nodes.map((node) => node.html).join(" ")}`), [], where);
      const wide = await page.evaluate(() =>
        [...document.querySelectorAll("#admin, #admin *:not(.away, thead, thead *)")].filter((one) => one.getBoundingClientRect().right > innerWidth || one.matches(".page") && one.scrollWidth > one.clientWidth).map((one) => one.outerHTML.slice(0, 200)),
      );
      assert.deepEqual(wide, [], `too wide: ${where}`);
      const isPhone = width < 600;
      const narrow = await page.locator("#admin tbody td:not(:empty)").evaluateAll((cells) => cells.filter((cell) => cell.clientWidth < 0.9 * cell.parentElement.clientWidth).length);
      assert.ok(!isPhone || narrow === 0, `a cell takes the whole width: ${where}`);
    }
  }
  await page.goBack();
  await waitForPage(page, pages.at(-1).title);
  await page.getByRole("link", { name: "Questions" }).click();
  await page.getByLabel("Your question").waitFor();
}

export async function members_have_no_administration(page, given) {
  await page.goto(`${given.url}/#admin=keys`);
  await enterToken(page, given.token);
  await page.locator("#desk").waitFor();
  assert.equal(await page.locator("#admin").isVisible(), false);
  assert.equal(await page.getByRole("link", { name: "Administration" }).count(), 0);
  // What an admin saw is gone after a sign-out.
  await page.getByRole("button", { name: "Sign out" }).click();
  await open(page, { ...given, token: given.admin }, "Members");
  await page.locator("#admin").getByText(given.secret).first().waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  assert.equal(new URL(page.url()).hash, "");
  assert.ok(!(await page.locator("body").textContent()).includes(given.secret));
  await enterToken(page, given.token);
  await page.locator("#desk").waitFor();
  assert.ok(!(await page.locator("body").textContent()).includes(given.secret));
}

export async function keys_are_created_rotated_and_revoked(page, given) {
  const dialogs = questions(page);
  await open(page, given, "API keys");
  await admin(page).getByText("No API keys yet.").waitFor();
  await admin(page).getByText("New API key").click();
  await admin(page).getByLabel("Name", { exact: true }).fill("backup");
  await admin(page).getByRole("combobox", { name: "Collection" }).selectOption({ label: given.collection });
  await admin(page).getByRole("button", { name: "Create" }).click();
  const key = page.locator("#admin .secret");
  await key.waitFor();
  const first = await key.innerText();
  assert.match(first, /^mn_live_/);
  const answer = await page.request.get(`${given.url}/v1/collections`, { headers: { Authorization: `Bearer ${first}` } });
  assert.equal(answer.status(), 403, "the key has only the scope that was chosen");
  assert.match(await row(page, "backup").innerText(), new RegExp(`valid[^]*retrievals:read[^]*only the collection ${given.collection}`));
  await admin(page).getByRole("button", { name: "Rotate: backup" }).click();
  await page.locator("#admin .secret").getByText(first).waitFor({ state: "detached" });
  assert.notEqual(await key.innerText(), first);
  await admin(page).getByRole("button", { name: "Revoke: backup" }).click();
  await waitForMessage(page, "The key “backup” is revoked.");
  await admin(page).getByRole("button", { name: "Revoke: backup" }).waitFor({ state: "detached" });
  assert.equal(dialogs.length, 2);
  assert.match(dialogs[0], /stops working at once/);
  assert.match(dialogs[1], /cannot be undone/);
  // What the API refuses is shown.
  await admin(page).getByText("New API key").click();
  await admin(page).getByLabel("Name", { exact: true }).fill("empty");
  for (const box of await page.locator("#admin [type=checkbox]:checked").all()) await box.uncheck();
  await admin(page).getByRole("button", { name: "Create" }).click();
  await waitForMessage(page, "Choose at least one scope.");
}

export async function a_key_has_the_scopes_of_its_use(page, given) {
  await open(page, given, "API keys");
  await admin(page).getByText("New API key").click();
  const scopes = () => page.locator("#admin fieldset :checked").evaluateAll((boxes) => boxes.map((box) => box.value));
  assert.deepEqual(await scopes(), ["retrievals:read"]);
  for (const [use, expected] of Object.entries(given.uses)) {
    await admin(page).getByLabel("Use").selectOption({ label: use });
    assert.deepEqual((await scopes()).sort(), expected);
  }
  await admin(page).getByLabel("Name", { exact: true }).fill("backup of the support desk");
  await admin(page).getByRole("button", { name: "Create" }).click();
  await row(page, "backup").waitFor();
  await checkWords(page);
}

const invitations = (page) => admin(page).getByRole("table", { name: "Invitations" });

export async function members_are_managed(page, given) {
  const dialogs = questions(page);
  await open(page, given, "Members");
  await row(page, given.own).waitFor();
  assert.equal(await row(page, given.own).getByRole("button").count(), 0, "admins do not change themselves");
  await admin(page).getByText("New member").click();
  await admin(page).getByLabel("User id").fill(given.unknown);
  await admin(page).getByRole("button", { name: "Invite" }).click();
  await page.locator("#admin .message.problem").getByText("There is no user with this id").waitFor();
  await admin(page).getByLabel("User id").fill(given.id);
  await admin(page).getByLabel("Name or e-mail").fill(given.name);
  const invite = async () => {
    await admin(page).getByRole("button", { name: "Invite" }).click();
    await waitForMessage(page, "The user is invited, and belongs to the org after accepting.");
    await invitations(page).getByText(given.id).waitFor();
  };
  await invite();
  await admin(page).getByRole("button", { name: `Withdraw: ${given.name}` }).click();
  await waitForMessage(page, `The invitation of ${given.name} is withdrawn.`);
  await admin(page).getByText("No invitation is open.").waitFor();
  await admin(page).getByText("New member").click();
  await admin(page).getByLabel("User id").fill(given.id);
  await admin(page).getByLabel("Name or e-mail").fill(given.name);
  await invite();
  const accepted = await page.request.post(new URL(`/api/v1/invitations/${given.org}`, given.url).href, {
    headers: { authorization: `Bearer ${given.accepting}` },
    data: { accept: true },
  });
  assert.equal(accepted.status(), 204);
  await page.reload();
  await row(page, given.id).getByText("member", { exact: true }).waitFor();
  assert.equal(await invitations(page).count(), 0);
  await admin(page).getByRole("button", { name: `Make admin: ${given.name}` }).click();
  await waitForMessage(page, `${given.name} is admin now.`);
  await row(page, given.name).getByText("admin", { exact: true }).waitFor();
  await admin(page).getByRole("button", { name: `Make member: ${given.name}` }).click();
  await waitForMessage(page, `${given.name} is member now.`);
  await admin(page).getByRole("button", { name: `Remove: ${given.name}` }).click();
  await waitForMessage(page, `${given.name} is removed.`);
  await row(page, given.id).waitFor({ state: "detached" });
  assert.equal(await page.locator("#admin tbody tr").count(), given.count);
  assert.deepEqual(dialogs.map((question) => question.split(" ")[0]), ["Make", "Make", "Remove"]);
}

export async function documents_are_found_and_deleted(page, given) {
  const dialogs = questions(page);
  await open(page, given, "Documents");
  await row(page, given.collection).getByRole("link").click();
  await admin(page).getByText("23 documents").waitFor();
  assert.equal(await page.locator("#admin tbody tr").count(), 20);
  await admin(page).getByRole("button", { name: "Next" }).click();
  await admin(page).getByText("21–23 of 23").waitFor();
  await admin(page).getByLabel("Title or file name").fill("minutes 1");
  await admin(page).getByText("11 documents found").waitFor();
  await admin(page).getByLabel("All documents of this page").check();
  await admin(page).getByLabel("Select: Minutes 10").uncheck();
  await admin(page).getByRole("button", { name: "Delete 10 documents" }).click();
  await waitForMessage(page, "10 documents deleted.");
  await admin(page).getByText("1 document found").waitFor();
  assert.match(dialogs[0], /Delete 10 documents from “minutes”[^]*cannot be undone[^]*“Minutes \d+”, “Minutes \d+”, “Minutes \d+”, 7 more$/);
  await admin(page).getByLabel("State").selectOption("failed");
  await admin(page).getByText("No document matches.").waitFor();
  await admin(page).getByRole("link", { name: "All collections" }).click();
  await admin(page).getByRole("button", { name: `Delete: ${given.collection}` }).click();
  await waitForMessage(page, `The collection “${given.collection}” is deleted.`);
  await admin(page).getByText("No collections yet.").waitFor();
  assert.match(dialogs[1], /with 13 documents, for all members/);
}

export async function failed_jobs_are_retried(page, given) {
  await open(page, given, "Jobs");
  await admin(page).getByLabel("State").selectOption("failed");
  for (const title of given.titles) await row(page, title).getByText("The file could not be read.").waitFor();
  await checkWords(page);
  await admin(page).getByRole("button", { name: `Retry: ${given.titles[0]}` }).click();
  await waitForMessage(page, "1 job will run again, in your name.");
  await row(page, given.titles[0]).waitFor({ state: "detached" });
  await admin(page).getByRole("button", { name: "Retry the 2 failed jobs of this page" }).click();
  await waitForMessage(page, "2 jobs will run again, in your name.");
  await admin(page).getByText("No job is in this state.").waitFor();
  await admin(page).getByLabel("State").selectOption("waiting");
  for (const title of given.titles) await row(page, title).getByText("waiting").waitFor();
}

export async function webhooks_are_managed(page, given) {
  const dialogs = questions(page);
  await open(page, given, "Webhooks");
  await admin(page).getByText("New webhook").click();
  await admin(page).getByLabel("Address").fill("http://127.0.0.1/");
  await admin(page).getByRole("button", { name: "Create" }).click();
  await page.locator("#admin .message.problem").waitFor();
  await admin(page).getByLabel("Address").fill("https://hooks.example/new");
  await admin(page).getByRole("button", { name: "Create" }).click();
  await page.locator("#admin .secret").getByText("whsec_").waitFor();
  await checkWords(page);
  const { address } = given;
  await admin(page).getByRole("link", { name: `Deliveries: ${address}` }).click();
  await admin(page).getByRole("heading", { name: "Deliveries" }).waitFor();
  await row(page, "document.deleted").getByText("failed").first().waitFor();
  await row(page, "document x").getByText("The address answered with an error.").waitFor();
  await checkWords(page);
  await admin(page).getByRole("button", { name: "Send again" }).click();
  await waitForMessage(page, "The event will be sent again.");
  await row(page, "document.deleted").getByText("waiting").waitFor();
  await admin(page).getByRole("link", { name: "All webhooks" }).click();
  await admin(page).getByRole("button", { name: `Disable: ${address}` }).click();
  await row(page, address).getByText("disabled").waitFor();
  await admin(page).getByRole("button", { name: `Enable: ${address}` }).click();
  await row(page, address).getByText("enabled").waitFor();
  await admin(page).getByRole("button", { name: `Delete: ${address}` }).click();
  await row(page, address).waitFor({ state: "detached" });
  assert.deepEqual(dialogs.map((question) => question.split(" ")[0]), ["Disable", "Delete"]);
}

export async function usage_has_the_tokens_of_each_day(page, given) {
  await open(page, given, "Usage");
  await admin(page).getByText("As a table, with tokens").click();
  const today = admin(page).locator("tbody tr").first();
  for (const text of ["1,234", "5,678"]) await today.getByText(text, { exact: true }).waitFor();
  // The desk of an admin has one more link in its header, and fits on a narrow phone.
  await page.getByRole("link", { name: "Questions" }).click();
  for (const width of [360, 320]) {
    await page.setViewportSize({ width, height: 740 });
    await page.getByRole("link", { name: "Administration" }).waitFor();
    const right = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, ...Array.from(document.querySelectorAll(".bar *"), (one) => one.getBoundingClientRect().right)));
    assert.ok(right <= width, `${right} pixels at ${width}`);
  }
}

export async function sources_are_managed(page, given) {
  const dialogs = questions(page);
  await open(page, given, "Sources");
  await admin(page).getByText("No sources yet.").waitFor();
  await admin(page).getByText("New source").click();
  await admin(page).getByLabel("Collection").selectOption({ label: given.collection });
  await admin(page).getByLabel("Address").fill("ftp://docs.example/");
  await admin(page).getByRole("button", { name: "Create" }).click();
  await page.locator("#admin .message.problem").waitFor();
  await admin(page).getByLabel("Kind").selectOption("Bucket");
  const address = "s3://handbook/policies/of/the/production/department/and/its/subsidiaries/in/northern/europe";
  await admin(page).getByLabel("Address").fill(address);
  await admin(page).getByLabel("Access key id").fill("a key");
  await admin(page).getByLabel("Secret access key").fill(given.secret);
  await admin(page).getByRole("button", { name: "Create" }).click();
  await row(page, address).getByText("not run yet").waitFor();
  assert.equal((await page.content()).includes(given.secret), false);
  await checkWords(page);
  await admin(page).getByRole("button", { name: `Run now: ${address}` }).click();
  await waitForMessage(page, "The source runs as soon as the worker is free.");
  await admin(page).getByRole("button", { name: `Disable: ${address}` }).click();
  await row(page, address).getByText("disabled").waitFor();
  await admin(page).getByRole("button", { name: `Enable: ${address}` }).click();
  await row(page, address).getByText("not run yet").waitFor();
  await admin(page).getByRole("button", { name: `Delete: ${address}` }).click();
  await row(page, address).waitFor({ state: "detached" });
  assert.deepEqual(dialogs.map((question) => question.split(" ")[0]), ["Disable", "Delete"]);
}

export async function a_record_is_reviewed(page, given) {
  await open(page, given, "Records");
  await admin(page).getByText("1 answered, 1 withheld").waitFor();
  await admin(page).getByText("Most asked without an answer").click();
  await admin(page).getByText(`${given.withheld.toLowerCase()} (1)`).waitFor();
  await admin(page).getByLabel("Result").selectOption("answered");
  await row(page, given.withheld).waitFor({ state: "detached" });
  await row(page, given.question).getByText("bad", { exact: true }).waitFor();
  await checkWords(page);
  await admin(page).getByRole("link", { name: given.question }).click();
  await admin(page).getByRole("heading", { name: given.question }).waitFor();
  await admin(page).locator("blockquote").getByText(given.answer).waitFor();
  await admin(page).getByText("Rating by the user: bad, too short").waitFor();
  assert.doesNotMatch(await page.locator("#admin .content").innerText(), /null|[{}]/, "raw JSON");
  await checkWords(page);
  await row(page, given.title).getByText(/semantic 1 \(\d\.\d\d\)/).waitFor();
  await admin(page).getByLabel("Was the answer right?").selectOption("wrong");
  await admin(page).getByLabel(given.title).check();
  await admin(page).getByRole("button", { name: "Save label" }).click();
  await waitForMessage(page, "The record is labelled wrong.");
  await admin(page).getByRole("button", { name: "Ask again" }).click();
  await admin(page).getByText(/Before: \w+ confidence, answered\. Now: \w+ confidence, answered\./).waitFor();
  await admin(page).getByText("The same passages, in the same order.").waitFor();
  await admin(page).getByRole("link", { name: "All records" }).click();
  await row(page, given.question).getByText("wrong").waitFor();
  await row(page, given.withheld).getByRole("link").click();
  await admin(page).getByRole("heading", { name: given.withheld }).waitFor();
  const text = await page.locator("#admin .content").innerText();
  assert.match(text, /mode keyword, .*metadata subject birds/);
  assert.doesNotMatch(text, /null|[{}]|org id/, "raw JSON");
}

export async function recording_is_turned_on_and_off(page, given) {
  const dialogs = questions(page);
  await open(page, given, "Records");
  const off = admin(page).getByText("Recording is off: questions and answers are not stored.");
  await off.waitFor();
  assert.equal(await admin(page).getByLabel("Result").isVisible(), false);
  await admin(page).getByText("Recording: off", { exact: true }).click();
  const days = admin(page).getByLabel("Days to keep each request");
  await days.fill("14");
  await admin(page).getByRole("button", { name: "Save" }).click();
  await waitForMessage(page, "Requests are recorded for 14 days. In the first minute, some may be left out.");
  await admin(page).getByText("Recording: 14 days", { exact: true }).waitFor();
  await off.waitFor({ state: "detached" });
  await admin(page).getByText("No records yet.").waitFor();
  await days.fill("");
  await admin(page).getByRole("button", { name: "Save" }).click();
  await waitForMessage(page, "Requests are no longer recorded.");
  await off.waitFor();
  assert.equal(dialogs.length, 1);
}
