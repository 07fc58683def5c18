// What people do in the playground, and what they see.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const MOST_BYTES = 150_000;

async function signIn(page, { url, token }) {
  await page.goto(url);
  await page.getByLabel("Access token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("#desk").waitFor();
}

/** Ask, and wait for the end of the answer; its turn. */
async function ask(page, question) {
  const turn = page.locator(".turn").nth(await page.locator(".turn").count());
  await page.getByLabel("Your question").fill(question);
  await page.locator("#send").click();
  await turn.locator(".confidence, .problem").first().waitFor();
  return turn;
}

const shownIn = async (page, place) => (await page.locator(place).innerText()).replaceAll(/\s+/g, " ");

const sizeOf = async (response) =>
  (await response.body().catch(() => "")).length + JSON.stringify(await response.allHeaders()).length;

export async function follow_a_citation(page, given) {
  const sizes = [];
  page.on("response", (response) => sizes.push(sizeOf(response)));
  await page.goto(given.url, { waitUntil: "networkidle" });
  const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  assert.ok(bytes > 1000 && bytes < MOST_BYTES, `${bytes} bytes of a first visit`);
  await signIn(page, given);
  const turn = await ask(page, given.question);
  assert.match(await turn.locator(".confidence").innerText(), /high confidence[^]*score 0\.\d\d; high from 0\.\d\d, medium from 0\.\d\d/i);
  await turn.locator(".timing summary").click();
  assert.match(await turn.locator(".stages").innerText(), /find\s[\d.]+ m?s[^]*write\s[\d.]+ m?s/);
  const result = page.locator(".result").first();
  assert.match(await result.innerText(), /score \d\.\d\d[^]*similarity \d\.\d\d/);
  await turn.locator(".pill").first().click();
  await page.locator("mark").first().waitFor();
  assert.equal((await page.locator("mark").allInnerTexts()).join(" "), given.quoted);
  assert.equal(await page.locator("#passage h2").innerText(), given.title);
  assert.ok(await page.locator("mark").first().evaluate((mark) => mark === document.activeElement));
  await page.getByRole("tab", { name: "Graph" }).click();
  assert.match(await page.locator("#graph-view").innerText(), new RegExp(given.connected));
  await page.getByRole("button", { name: `Open the passage: ${given.edge}` }).click();
  await page.locator("#passage mark").waitFor();
  // The tab remembers who it is, until they sign out.
  await page.reload();
  await page.locator("#desk").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Access token").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem("token")), null);
}

export async function a_click_signs_in_a_person_of_the_demo(page, given) {
  await page.goto(given.url);
  await page.getByLabel("Access token").waitFor();
  assert.equal(await page.locator(".person").count(), 0, "without the secret no user is offered");
  await page.goto("about:blank");
  await page.goto(given.playground);
  await page.getByRole("button", { name: /tomas@halden/ }).click();
  await page.getByRole("button", { name: given.sample }).click();
  await page.locator(".turn .asked").getByText(given.sample).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: /sam@nowhere/ }).click();
  await page.getByText("You belong to no org. Ask an admin to invite you to one.").waitFor();
  assert.equal(new URL(page.url()).hash, "", "the secret does not stay in the URL");
}

export async function what_is_uploaded_is_found_by_its_org_alone(page, given) {
  await signIn(page, given);
  const buffer = Buffer.from(given.text);
  await page.getByLabel("Upload files").setInputFiles({ name: given.filename, mimeType: "text/plain", buffer });
  await page.locator("#uploads").getByText(/ready: 1 chunk/).waitFor();
  await page.locator("#documents").getByText(given.filename).waitFor();
  const turn = await ask(page, given.question);
  assert.match(await turn.locator(".answer").innerText(), new RegExp(given.answer));
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, { ...given, token: given.stranger });
  await page.getByText("There are no documents yet").waitFor();
  const other = await ask(page, given.question);
  assert.match(await other.innerText(), /low confidence/i);
  await page.getByText("No document that you may see matches. Rephrase the question, or widen the filters.").waitFor();
  const seen = await page.locator("body").innerText();
  for (const secret of [given.answer, given.filename]) assert.ok(!seen.includes(secret), secret);
}

/** The page is deployed with the address of Realtime, as docs/playground.md says. */
export async function uploads_follow_realtime(page, given) {
  const origin = given.realtime.replace("http", "ws");
  const address = `${origin}/realtime/v1/websocket?apikey=sb_publishable_x&vsn=1.0.0`;
  const configured = (text) => text.replace('"realtime" content=""', `"realtime" content="${address}"`).replace("connect-src 'self'", `$& ${origin}`);
  await page.route(`${given.url}/`, async (route) => {
    const response = await route.fetch();
    const policy = configured(response.headers()["content-security-policy"]);
    await route.fulfill({ response, headers: { ...response.headers(), "content-security-policy": policy }, body: configured(await response.text()) });
  });
  // Chromium takes a page that Playwright changes for one of the internet.
  await page.context().grantPermissions(["local-network-access"]);
  // The polls without Realtime follow each other quickly, and where Realtime is deaf, those beside it.
  await page.addInitScript(() => {
    const set = setTimeout;
    globalThis.setTimeout = (run, milliseconds) => set(run, milliseconds < 10_000 || globalThis.isHurried ? 100 : milliseconds);
  });
  const sockets = [];
  page.on("websocket", (socket) => sockets.push(socket));
  await signIn(page, given);
  for (const way of given.ways) {
    await page.evaluate((isHurried) => (globalThis.isHurried = isHurried), way === "is-deaf");
    const file = { name: `${way}.txt`, mimeType: "text/plain", buffer: Buffer.from(`The kiln ${way}.`) };
    await page.getByLabel("Upload files").setInputFiles(file);
    // A poll that no change and no failure brings forward comes after ten seconds.
    await page.locator("#uploads li", { hasText: file.name }).getByText(/ready: 1 chunk/).waitFor({ timeout: 8_000 });
  }
  assert.equal(sockets.length, given.sockets);
  await Promise.all(sockets.map((socket) => socket.isClosed() || socket.waitForEvent("close")));
}

export async function nothing_of_who_leaves_stays_or_comes(page, given) {
  // Ann's answers are on their way for so long that she has left by then.
  let late = 0;
  await page.route("**/api/v1/**", async (route) => {
    const isAnn = (await route.request().headerValue("authorization")) === `Bearer ${given.token}`;
    if (isAnn) await new Promise((resolve) => setTimeout(resolve, 600));
    late += isAnn;
    await route.continue().catch(() => {});
  });
  await signIn(page, given);
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, { ...given, token: given.stranger });
  await page.getByText("There are no documents yet").waitFor();
  await page.waitForTimeout(1200);
  assert.ok(late >= 1);
  assert.ok(!(await page.locator("body").innerText()).includes(given.title));
  // What was there before a sign-in that fails is not there after it.
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, given);
  await page.locator("#documents").getByText(given.title).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Access token").fill("mn_live_of_nobody");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("This token or key is not accepted.").waitFor();
  assert.equal(await page.locator("#desk").isVisible(), false);
  assert.ok(!(await page.locator("body").textContent()).includes(given.title));
}

/** The controls whose value is another one than that of the page as it is served. */
const written = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("input, textarea, select")]
      .filter((control) => {
        if (control.type === "checkbox") return control.checked !== control.defaultChecked;
        return control.value !== (control.defaultValue ?? control.options[0]?.value ?? "");
      })
      .map(({ id, value }) => `${id}: ${value}`),
  );

export async function no_form_data_survives_a_sign_out(page, given) {
  const write = async () => {
    // The list moves what is below it: a click during its first rendering may miss.
    await page.locator("#documents").getByText(given.title).waitFor();
    await page.getByText("New collection").click();
    await page.getByLabel("Name", { exact: true }).fill("a secret name");
    await page.locator("#controls summary").click();
    await page.getByLabel("Metadata, as").fill("author=secret");
    await page.locator("#mode").selectOption("graph");
    await page.locator("#deep").check();
    await page.getByLabel("Your question").fill("a secret draft");
  };
  const isClear = async () => {
    await page.getByLabel("Access token").waitFor();
    assert.deepEqual(await written(page), []);
    const text = await page.locator("body").textContent();
    for (const secret of [given.title, given.question, "secret"]) assert.ok(!text.includes(secret), secret);
  };
  await signIn(page, given);
  await ask(page, given.question);
  await write();
  assert.equal((await written(page)).length, 5);
  // An answer on its way gives its question back to nobody.
  await page.locator("#send").click();
  await page.locator("#sign-out").click();
  await isClear();
  // The browser keeps what was written on a page of its history,
  await signIn(page, given);
  assert.ok(await page.locator("#send").isVisible());
  await write();
  await page.goto(`${given.url}/?again`);
  await page.locator("#sign-out").click();
  await page.goBack();
  await isClear();
  // or the page as it was.
  await signIn(page, given);
  await write();
  await page.evaluate(() => {
    sessionStorage.clear();
    dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
  });
  await isClear();
}

export async function a_library_is_kept(page, given) {
  await signIn(page, given);
  const documents = page.locator("#documents");
  // All collections: documents of each, and files go where the list says.
  for (const title of given.titles) await documents.getByText(title, { exact: true }).waitFor();
  await page.getByRole("button", { name: `What should I know about “${given.titles[0]}”?` }).waitFor();
  await page.getByLabel("Into").selectOption({ label: given.target });
  const files = given.files.map(({ name, text }) => ({ name, mimeType: "application/pdf", buffer: Buffer.from(text) }));
  await page.getByLabel("Upload files").setInputFiles(files);
  await page.locator("#uploads .detail.failed").nth(files.length - 1).waitFor();
  // Not among the documents. The number at a collection counts them too.
  await page.locator("#failed-count").getByText(`${files.length} failed uploads`).click();
  await page.locator("#failed .detail.failed").nth(files.length - 1).waitFor();
  assert.equal(await documents.locator("li").count(), given.titles.length);
  assert.equal(await page.locator("#documents-count").innerText(), `${given.titles.length} documents, ${files.length} failed uploads`);
  for (const [width, view] of [[1360, null], [390, "Library"]]) {
    await page.setViewportSize({ width, height: 860 });
    if (view) await page.getByRole("navigation", { name: "Views" }).getByRole("button", { name: view }).click();
    const narrow = await page.evaluate(() =>
      [...document.querySelectorAll("#uploads .name, #uploads .detail, #failed .choice, #failed .detail, #documents .choice, #documents .detail")]
        .filter((text) => text.getBoundingClientRect().width < 150)
        .map((text) => text.textContent),
    );
    assert.deepEqual(narrow, [], `squeezed at ${width} pixels`);
    assert.ok(await page.locator("#library").evaluate((panel) => panel.scrollWidth <= panel.clientWidth), `too wide at ${width} pixels`);
  }
  await page.locator("#collections .choice", { hasText: given.target }).click();
  await page.getByRole("button", { name: `Delete document: ${given.remaining}` }).click();
  await documents.getByText(given.remaining, { exact: true }).waitFor({ state: "detached" });
  assert.ok(await page.locator("#library").evaluate((panel) => panel.contains(document.activeElement)), "the focus stays in the library");
  await page.getByRole("button", { name: `Delete collection: ${given.target}` }).click();
  await page.locator("#collections").getByText(given.target).waitFor({ state: "detached" });
  await documents.getByText(given.titles[0], { exact: true }).waitFor();
  assert.equal(await page.locator("#collections .choice[aria-current] span").first().innerText(), "All collections");
}

export async function own_documents_come_first(page, given) {
  await signIn(page, given);
  const titles = page.locator("#documents .choice > :first-child");
  await titles.nth(given.titles.length - 1).waitFor();
  assert.deepEqual(await titles.allInnerTexts(), given.titles);
  const name = page.getByLabel("Search documents by title or file name");
  await name.fill(given.titles.at(-1).toUpperCase());
  await page.getByText("1 document found").waitFor();
  assert.deepEqual(await titles.allInnerTexts(), given.titles.slice(-1));
  await name.fill("no such title");
  await page.getByText("0 documents found").waitFor();
  await name.fill("");
  await page.getByText(`${given.titles.length} documents`, { exact: true }).waitFor();
  // What a user has searched for is gone after a sign-out.
  await name.fill("no such title");
  await page.getByRole("button", { name: "Sign out" }).click();
  assert.equal(await page.locator("#document-name").inputValue(), "");
}

export async function equal_titles_show_their_collections(page, given) {
  await signIn(page, given);
  await ask(page, given.question);
  const results = page.locator(".result").filter({ hasText: given.title });
  await results.nth(1).waitFor();
  for (const collection of given.collections) await results.filter({ hasText: collection }).first().waitFor();
  for (const collection of given.collections) {
    await page.locator("#documents .choice").filter({ hasText: given.title }).filter({ hasText: collection }).click();
    await page.locator("#passage .quiet").getByText(collection).waitFor();
  }
}

export async function a_withheld_answer_names_no_writer(page, given) {
  await signIn(page, given);
  const turn = await ask(page, given.question);
  await turn.getByText("too low for an answer").waitFor();
  await turn.locator(".timing summary").click();
  const text = await turn.locator(".timing").innerText();
  assert.match(text, /no answer was written/);
  assert.doesNotMatch(text, /written by|0 tokens/);
}

export async function an_answer_stays_in_view(page, given) {
  await signIn(page, given);
  const turns = page.locator("#turns");
  const endIsInView = () =>
    page.waitForFunction(() => {
      const { scrollHeight, scrollTop, clientHeight } = document.querySelector("#turns");
      return scrollHeight - scrollTop - clientHeight < 2;
    });
  await ask(page, given.question);
  assert.ok((await turns.evaluate((place) => place.scrollHeight - place.clientHeight)) > 500, "the answer is long");
  await endIsInView();
  const asking = ask(page, given.question);
  await turns.getByText("Half is written").nth(1).waitFor();
  await endIsInView();
  await turns.hover();
  await page.mouse.wheel(0, -300);
  await page.waitForFunction(() => document.querySelector("#turns").scrollTop < document.querySelector("#turns").scrollHeight - 900);
  const top = await turns.evaluate((place) => place.scrollTop);
  await asking;
  assert.ok(Math.abs((await turns.evaluate((place) => place.scrollTop)) - top) < 5, "the user reads elsewhere");
}

export async function markdown_is_rendered_safely(page, given) {
  await signIn(page, given);
  const rendered = await page.evaluate(async (cases) => {
    const { markdown } = await import("/markdown.js");
    return cases.map(([text]) => {
      const place = document.createElement("div");
      place.append(markdown(text));
      return place.innerHTML;
    });
  }, given.cases);
  for (const [which, [text, expected]] of given.cases.entries()) assert.equal(rendered[which], expected, text);
  // Hostile texts take no longer than others.
  const slow = await page.evaluate(async (hostile) => {
    const { markdown } = await import("/markdown.js");
    const texts = hostile.flatMap(([length, pieces]) => pieces.map((piece) => piece.repeat(length / piece.length)));
    return texts.filter((text) => {
      const started = performance.now();
      document.createElement("div").append(markdown(text));
      return performance.now() - started > 1500;
    });
  }, given.hostile);
  assert.deepEqual(slow, []);
  // In a document, with what an answer quotes highlighted.
  const turn = await ask(page, given.question);
  assert.ok(!(await page.locator(".snippet").first().innerText()).includes("**"));
  await turn.locator(".pill").first().click();
  await page.locator("#passage mark").first().waitFor();
  assert.equal((await page.locator("#passage li mark").allInnerTexts()).join(""), given.quoted);
  assert.deepEqual(await page.locator("#passage a").evaluateAll((links) => links.map((link) => link.getAttribute("href"))), ["https://example.com/kiln"]);
  assert.equal(await page.locator("#desk :is(img, script, iframe, style)").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.broken), undefined);
}

export async function documents_and_models_are_text(page, given) {
  await signIn(page, given);
  const turn = await ask(page, given.question);
  assert.equal((await turn.locator(".answer").innerText()).trim(), given.shown);
  await page.locator(".result").first().waitFor();
  assert.ok((await shownIn(page, "#results")).includes(given.title));
  assert.ok((await shownIn(page, "#documents")).includes(given.title));
  await turn.locator(".source").first().click();
  await page.locator("#passage mark").first().waitFor();
  assert.ok((await shownIn(page, "#passage")).includes(given.title));
  assert.ok((await shownIn(page, "#passage")).includes(given.text));
  await page.locator("#sessions .choice").first().waitFor();
  assert.ok((await shownIn(page, "#sessions")).includes(given.question));
  await page.locator("#sessions .choice").first().click();
  await page.locator(".turn .answer").waitFor();
  assert.equal(await page.evaluate(() => globalThis.broken), undefined);
  assert.equal(await page.locator("#desk :is(img, script, iframe, a, style)").count(), 0);
}

export async function a_deep_answer_is_cited(page, given) {
  await signIn(page, given);
  await page.locator("#controls summary").click();
  await page.locator("#deep").check();
  const turn = await ask(page, given.question);
  assert.ok((await turn.locator(".steps li").count()) > 2);
  for (const pill of await turn.locator(".pill").all()) {
    const text = await pill.evaluate((node) => node.previousSibling.data);
    const [, title] = text.match(/"([^"]+)"/);
    await pill.click();
    await page.locator("#passage h2").filter({ hasText: title }).waitFor();
    await page.locator("#passage mark").first().waitFor();
  }
  assert.ok((await turn.locator(".pill").count()) >= 2);
}

export async function a_member_of_two_orgs_chooses(page, given) {
  await signIn(page, given);
  await page.locator("#collections li").waitFor();
  assert.equal(await page.locator("#collections").getByText("All collections").count(), 0);
  assert.deepEqual(await page.getByLabel("Organization").locator("option").allInnerTexts(), given.orgs);
  const found = [];
  for (const org of given.orgs) {
    await page.getByLabel("Organization").selectOption({ label: org });
    await page.locator("#documents").getByText(given.titles[found.length]).waitFor();
    const turn = await ask(page, given.question);
    await turn.locator(".source").first().waitFor();
    found.push(await turn.locator(".source").first().innerText());
  }
  assert.deepEqual(found.map((text) => text.replace(/^1 /, "")), given.titles);
  // A session is opened again with the collection that it is about.
  await page.locator("#sessions .choice").nth(1).click();
  await page.locator("#sessions li:nth-child(2) .choice[aria-current]").waitFor();
  const again = await ask(page, given.question);
  assert.equal(await again.locator(".confidence").count(), 1);
}

export async function a_session_goes_on_and_ends(page, given) {
  await signIn(page, given);
  await ask(page, given.question);
  const second = await ask(page, given.followed);
  assert.match(await second.innerText(), /Searched for/);
  await page.getByRole("button", { name: "New session" }).click();
  assert.equal(await page.locator(".turn").count(), 0);
  await page.locator("#sessions .choice").first().click();
  await page.locator(".turn").nth(1).waitFor();
  assert.equal(await page.locator(".turn .asked").nth(1).innerText(), given.followed);
  assert.ok((await page.locator(".turn .pill").count()) > 0, "the pills of a kept answer open its sources");
  await page.locator(".turn .pill").first().click();
  await page.locator("mark").first().waitFor();
  await page.getByRole("button", { name: /^Delete session/ }).click();
  await page.locator("#sessions").getByText("No sessions yet.").waitFor();
  assert.equal(await page.locator(".turn").count(), 0);
}

export async function a_token_expires_while_an_answer_comes(page, given) {
  await signIn(page, given);
  const turn = await ask(page, given.question);
  await page.getByText("Your sign-in has ended").waitFor();
  assert.ok((await turn.locator(".answer").innerText()).includes(given.answer), "the beginning of the answer stays");
  await page.getByLabel("Access token").fill(given.renewed);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("#signin").waitFor({ state: "hidden" });
  assert.ok((await turn.locator(".answer").innerText()).includes(given.answer));
  await ask(page, given.followed);
  assert.equal(await page.locator(".turn").count(), 2);
  await page.locator("#sessions .choice[aria-current]").waitFor();
  assert.equal(await page.locator("#sessions li").count(), 1, "the session went on");
}

export async function a_user_without_an_org_is_told_so(page, given) {
  await page.goto(given.url);
  await page.getByLabel("Access token").fill(given.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("#signin-problem").getByText(given.message, { exact: true }).waitFor();
  await page.getByText(`Your user id: ${given.id}`).waitFor();
  assert.equal(await page.locator("#desk").isVisible(), false);
}

export async function invited_users_join_or_decline(page, given) {
  const enterToken = async (token) => {
    await page.getByLabel("Access token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  const invitations = page.getByRole("region", { name: "Invitations" });
  await page.goto(given.url);
  await enterToken(given.token);
  await page.locator("#signin-problem").getByText(given.message, { exact: true }).waitFor();
  await invitations.getByText("Acme invites you as member.").waitFor();
  await invitations.getByRole("button", { name: "Decline the invitation of Bolt" }).click();
  await invitations.getByText("Bolt").waitFor({ state: "detached" });
  await invitations.getByRole("button", { name: "Join Acme" }).click();
  await page.locator("#desk").waitFor();
  await invitations.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Sign out" }).click();
  await enterToken(given.member);
  await page.locator("#desk").waitFor();
  assert.equal(await page.getByLabel("Organization").isVisible(), false);
  await invitations.getByRole("button", { name: "Join Bolt" }).click();
  await page.getByLabel("Organization").waitFor();
  assert.deepEqual(await page.getByLabel("Organization").locator("option").allInnerTexts(), ["Acme", "Bolt"]);
  await page.getByRole("button", { name: "Sign out" }).click();
  assert.equal(await invitations.isVisible(), false);
}

export async function a_stream_breaks_off(page, given) {
  await signIn(page, given);
  const turn = await ask(page, given.question);
  assert.ok((await turn.locator(".answer").innerText()).includes(given.answer));
  assert.ok((await turn.locator(".problem").innerText()).length > 0);
  assert.equal(await turn.locator(".answer").getAttribute("aria-busy"), "false");
}

export async function the_server_is_gone_and_comes_back(page, given) {
  await signIn(page, given);
  await page.context().setOffline(true);
  const turn = await ask(page, given.question);
  assert.match(await turn.locator(".problem").innerText(), /does not answer/);
  await page.getByText("The server does not answer. Trying again").waitFor();
  await page.context().setOffline(false);
  await page.getByText("The server is back.").waitFor();
  const again = await ask(page, given.question);
  assert.equal(await again.locator(".confidence").count(), 1);
}

export async function a_long_list_comes_in_pages(page, given) {
  await signIn(page, given);
  await page.getByText(`49 of ${given.count} documents, 1 failed upload so far`).waitFor();
  // (Twice, as the impatient do: no page is passed over.)
  await page.locator("#more-documents").dblclick();
  await page.getByText(`99 of ${given.count} documents, 1 failed upload so far`).waitFor();
  const names = await page.locator("#documents li").allInnerTexts();
  assert.equal(new Set(names).size, 99);
}

/** The least contrast of a placeholder in sight to its control. */
const placeholderContrast = (page) =>
  page.locator("[placeholder]:visible").evaluateAll((controls) => {
    const luminance = (colour) => {
      const [red, green, blue] = colour.match(/[\d.]+/g).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const contrasts = controls.map((control) => {
      const [dark, light] = [getComputedStyle(control, "::placeholder").color, getComputedStyle(control).backgroundColor].map(luminance).sort((one, other) => one - other);
      return (light + 0.05) / (dark + 0.05);
    });
    return Math.min(...contrasts);
  });

/** Nothing that axe-core finds, in light and in dark, wide and narrow; and everything by the keyboard. */
export async function everybody_can_use_it(page, given) {
  const axe = await readFile(given.axe, "utf8");
  const audit = async (where) => {
    const { violations } = await page.evaluate(() => axe.run(document));
    const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
    assert.deepEqual(found, [], where);
  };
  await page.goto(given.url);
  await page.getByLabel("Access token").waitFor();
  await page.evaluate(axe);
  await audit("signing in");
  await page.keyboard.press("Tab");
  await page.getByLabel("Access token").focus();
  await page.keyboard.insertText(given.token);
  await page.keyboard.press("Enter");
  await page.locator("#desk").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "question");
  await page.locator(".sample").first().waitFor();
  await audit("sample questions");
  await page.keyboard.insertText(given.question);
  await page.keyboard.press("Enter");
  await page.locator(".confidence").waitFor();
  await page.locator(".pill").first().focus();
  await page.keyboard.press("Enter");
  await page.locator("mark").first().waitFor();
  await page.locator("#tab-passage").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#results").isVisible(), true);
  await page.keyboard.press("ArrowRight");
  await page.locator("#graph-view").waitFor();
  await page.locator("#documents .choice", { hasText: given.title }).click();
  await page.locator("#passage table").waitFor();
  await page.locator("#controls summary").click();
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await audit(colorScheme);
    const contrast = await placeholderContrast(page);
    assert.ok(contrast >= 4.5 && contrast < 21, `placeholders have a contrast of ${contrast}, ${colorScheme}`);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  for (const view of ["Library", "Evidence", "Ask"]) {
    await page.getByRole("navigation", { name: "Views" }).getByRole("button", { name: view }).click();
    await audit(`narrow, ${view}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${view} is ${wide} pixels too wide`);
  }
}

export async function results_begin_at_the_top(page, given) {
  await page.setViewportSize({ width: 1360, height: 200 });
  await signIn(page, given);
  const top = (wanted) => page.waitForFunction((place) => document.querySelector("#evidence").scrollTop === place, wanted);
  const scroll = () => page.locator("#evidence").evaluate((panel) => ((panel.scrollTop = 30), panel.scrollTop));
  await ask(page, given.question);
  await page.locator(".result").first().waitFor();
  assert.equal(await scroll(), 30);
  await page.getByRole("tab", { name: "Passage" }).click();
  await top(0);
  await page.getByRole("tab", { name: "Results" }).click();
  await top(30);
  await ask(page, given.question);
  await top(0);
  await page.getByRole("tab", { name: "Graph" }).click();
  assert.equal(await scroll(), 30);
  await ask(page, given.question);
  await page.getByRole("tab", { name: "Results", selected: true }).waitFor();
  await page.getByRole("tab", { name: "Graph" }).click();
  await top(0);
}

export async function an_answer_is_rated(page, given) {
  await signIn(page, given);
  const turn = await ask(page, given.question);
  const [good, bad] = ["Good answer", "Bad answer"].map((name) => turn.getByRole("button", { name }));
  await good.click();
  await turn.getByRole("button", { name: "Good answer", pressed: true }).waitFor();
  await bad.click();
  await turn.getByLabel("What is wrong with it?").fill(given.reason);
  await turn.getByRole("button", { name: "Send" }).click();
  await turn.locator(".feedback form").waitFor({ state: "hidden" });
  assert.equal(await good.getAttribute("aria-pressed"), "false");
  assert.equal(await bad.getAttribute("aria-pressed"), "true");
}

export async function an_answer_without_a_record_is_not_rated(page, given) {
  await signIn(page, given);
  const turn = await ask(page, given.question);
  assert.equal(await turn.locator(".feedback").count(), 0);
}
