#!/usr/bin/env node
import path from "node:path";
// Runs the TypeScript sources, so that a checkout and an installed package are the same program.
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureGenerated } from "../scripts/ensure-generated.mjs";
import { built } from "./build.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
ensureGenerated(root);
process.setSourceMapsEnabled(true);
await import(pathToFileURL(await entry()).href);

/** The build; where there is none and nothing can be written, the sources themselves. */
async function entry() {
  try {
    return await built(root);
  } catch (error) {
    if (!["EROFS", "EACCES", "EPERM"].includes(error?.code)) throw error;
    (await import("tsx/esm/api")).register();
    return path.join(root, "src/app/cli.ts");
  }
}
