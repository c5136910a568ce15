/**
 * The process is killed at a named place, started again, and the story ends with one effect. Here the places around the money;
 * `npm run test:kills` dies at every place of the catalogue.
 */
import { describe, it } from "vitest";
import { withDatabases } from "./support/databases.js";
import { killAt } from "./support/kill.js";
import { KILLED_IN_EVERY_RUN } from "./support/kill-list.js";

const databases = withDatabases();
const KILL_MS = 240_000;

describe("killed there and started again, one effect, told once", { concurrent: true }, () => {
  for (const { name, pass } of KILLED_IN_EVERY_RUN) {
    it(`${name}, pass ${pass}`, { timeout: KILL_MS }, () => killAt(databases, name, pass));
  }
});
