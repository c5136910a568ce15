#!/usr/bin/env node
import path from "node:path";
// Runs the TypeScript sources, so that a checkout and an installed package are the same program.
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureGenerated } from "../scripts/ensure-generated.mjs";
import { built } from "./build.mjs";

/** Why nothing can be kept in .countersign: it may not be written, is a file, or is a link that leads nowhere or in a circle. */
const NO_PLACE = ["EROFS", "EACCES", "EPERM", "ENOTDIR", "EEXIST", "ENOENT", "ELOOP"];

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
ensureGenerated(root);
process.setSourceMapsEnabled(true);
await import(pathToFileURL(await entry()).href);

/** The build; where there is none and nothing can be written, the sources themselves. */
async function entry() {
  try {
    return await built(root);
  } catch (error) {
    if (!NO_PLACE.includes(error?.code)) throw error;
    (await import("tsx/esm/api")).register();
    return path.join(root, "src/app/cli.ts");
  }
}
