/** `npm run test:kills`: the process dies at every place of the catalogue that the ordinary run does not visit. */
import { describe, expect, it } from "vitest";
import { FAILPOINTS } from "../../src/domain/failpoints.js";
import { withDatabases } from "../e2e/support/databases.js";
import { killAt } from "../e2e/support/kill.js";
import { KILLED_BY_THEIR_OWN_TEST, KILLED_IN_EVERY_RUN, KILLED_ON_DEMAND } from "../e2e/support/kill-list.js";

const databases = withDatabases();
const KILL_MS = 240_000;

describe("killed there and started again, one effect, told once", { concurrent: true }, () => {
  for (const { name, pass } of KILLED_ON_DEMAND) {
    it(`${name}, pass ${pass}`, { timeout: KILL_MS }, () => killAt(databases, name, pass));
  }
});

it("leaves out no place of the catalogue", () => {
  const killed = new Set([...KILLED_IN_EVERY_RUN, ...KILLED_ON_DEMAND].map(({ name }) => name));
  for (const name of KILLED_BY_THEIR_OWN_TEST) killed.add(name);
  expect([...killed].sort()).toEqual([...FAILPOINTS].sort());
});
