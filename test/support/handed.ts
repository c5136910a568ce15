/** Handed data of third parties, which lies beside some checkouts and not beside others. Never part of the project. */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** A file of the handed data, in COUNTERSIGN_DATA or beside this checkout; null: it is not there, and a test says so. */
export function handedFile(...segments: readonly string[]): string | null {
  const fromEnv = process.env["COUNTERSIGN_DATA"];
  if (fromEnv !== undefined && fromEnv !== "") {
    const file = join(resolve(fromEnv), ...segments);
    return existsSync(file) ? file : null;
  }
  let at = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const file = join(at, "shared", "data", ...segments);
    if (existsSync(file)) return file;
    const parent = dirname(at);
    if (parent === at) return null;
    at = parent;
  }
}
