/** Serves the page's files, and nothing outside their directory. */
import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { extname, join, normalize, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { PAGE_HEADERS } from "./guard.js";

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
};

/** Packages whose browser module the page loads as it was published. */
const VENDORED: Record<string, string> = { "/vendor/marked.js": "marked" };

const FALLBACK = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Slack sandbox</title>
<body style="font:16px/1.5 system-ui;max-width:40rem;margin:4rem auto;padding:0 1rem">
<h1>Slack sandbox</h1><p>The page is not built here. The wire is at <code>/api/</code>, control at <code>/sandbox/</code>;
see docs/sandbox.md.</p></body></html>`;

/** Paths that belong to the page itself and are opened by its client-side routing, as permalinks are. */
function isPagePath(path: string): boolean {
  return path === "/" || path.startsWith("/archives/");
}

export async function servePage(res: ServerResponse, directory: string, pathname: string): Promise<void> {
  const wanted = isPagePath(pathname) ? "index.html" : decodeSafely(pathname).slice(1);
  const root = normalize(directory + sep);
  const vendored = Object.hasOwn(VENDORED, pathname) ? VENDORED[pathname] : undefined;
  const file =
    vendored === undefined ? normalize(join(root, wanted)) : fileURLToPath(import.meta.resolve(vendored));
  const type = TYPES[extname(file)];
  if ((vendored === undefined && !file.startsWith(root)) || type === undefined) {
    notFound(res);
    return;
  }
  try {
    const content = await readFile(file);
    res.writeHead(200, { ...PAGE_HEADERS, "content-type": type, "cache-control": "no-cache" });
    res.end(content);
  } catch {
    if (!isPagePath(pathname)) {
      notFound(res);
      return;
    }
    res.writeHead(200, { ...PAGE_HEADERS, "content-type": "text/html; charset=utf-8" });
    res.end(FALLBACK);
  }
}

function decodeSafely(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function notFound(res: ServerResponse): void {
  res.writeHead(404, { ...PAGE_HEADERS, "content-type": "text/plain; charset=utf-8" });
  res.end("not found");
}
