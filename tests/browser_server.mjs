// One Chromium for the browser tests of a process: prints the address that Playwright connects to, and ends with its
// standard input.

import { chromium } from "playwright-core";

const server = await chromium.launchServer({
  executablePath: process.argv[2],
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
console.log(server.wsEndpoint());
process.stdin.resume();
process.stdin.on("end", () => server.close());
