#!/usr/bin/env node
import path from "node:path";
// Runs the TypeScript sources through tsx, so that a checkout and an installed package are the same program.
import { fileURLToPath, pathToFileURL } from "node:url";
import { register } from "tsx/esm/api";
import { ensureGenerated } from "../scripts/ensure-generated.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
await ensureGenerated(root);
register();
await import(pathToFileURL(path.join(root, "src/app/cli.ts")).href);
