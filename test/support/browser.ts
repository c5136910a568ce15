import { existsSync } from "node:fs";

/** Where Debian's and the usual other packages put Chromium; CHROMIUM_PATH names another place. */
const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** A Chromium for playwright-core, or undefined: browser suites say `describe.skipIf(chromiumPath() === undefined)`. */
export function chromiumPath(): string | undefined {
  const named = process.env["CHROMIUM_PATH"];
  return [...(named === undefined ? [] : [named]), ...PLACES].find((path) => existsSync(path));
}

/** Arguments for a headless run that stays off the network, also as root in a container. */
export const CHROMIUM_ARGS: readonly string[] = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
