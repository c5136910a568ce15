import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  activePolicy,
  checkPolicyFile,
  type PolicyFileError,
  type PolicyWatch,
  watchPolicyFile,
} from "../../src/policy/index.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";

const pg = withDatabase();
let folder: string;
let file: string;
const watches: PolicyWatch[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "policy-"));
  file = join(folder, "policy.yaml");
});
afterEach(async () => {
  await Promise.all(watches.splice(0).map((watch) => watch.stop()));
  await rm(folder, { recursive: true });
});

const auto = async (): Promise<unknown> => (await activePolicy(pg.db)).policy.kinds.refund.auto;
const say = (text: string): Promise<void> => writeFile(file, text);
const limited = (pounds: number): string => `kinds: { refund: { auto: { GBP: ${pounds * 100} } } }`;

interface Told {
  activated: string[];
  invalid: PolicyFileError[];
  errors: unknown[];
  other?: { file: string; inForce: string | null }[];
}
async function watch(
  told: Told = { activated: [], invalid: [], errors: [] },
  everyMs = 20,
): Promise<{ watch: PolicyWatch; told: Told }> {
  const started = await watchPolicyFile({
    db: pg.db,
    file,
    everyMs,
    onActivated: ({ hash }) => told.activated.push(hash),
    onInvalid: (error) => told.invalid.push(error),
    onError: (error) => told.errors.push(error),
    compareEveryMs: 20,
    ...(told.other === undefined ? {} : { onOther: (hashes) => told.other?.push(hashes) }),
  });
  watches.push(started);
  return { watch: started, told };
}

describe("a policy file at the start", () => {
  it("that does not exist stops the start and says what to set", async () => {
    await expect(watch()).rejects.toThrow(
      /policy.yaml: there is no such file; name the policy file in POLICY_FILE/,
    );
  });

  it("that is not valid stops the start with its line, and nothing is active", async () => {
    await say("version: 1\nkinds: { refund: { windowDays: 0 } }\n");
    await expect(watch()).rejects.toThrow(
      /policy.yaml, line 2: kinds.refund.windowDays must be more than 0 days/,
    );
    await expect(activePolicy(pg.db)).rejects.toMatchObject({ code: "no_active_policy" });
  });

  it("that is not text is refused", async () => {
    await writeFile(file, Buffer.from([0xff, 0xfe, 0x00, 0x41]));
    await expect(watch()).rejects.toThrow(/cannot be read/);
    await expect(watchPolicyFile({ db: pg.db, file: folder })).rejects.toThrow(/cannot be read/);
  });
});

describe("a policy file that changes while running", () => {
  it("is taken up when it is valid", async () => {
    await say(limited(10));
    const { told } = await watch();
    expect(await auto()).toEqual({ GBP: 1000n });
    await say(limited(20));
    await waitFor(async () => told.activated.length > 0);
    expect(await auto()).toEqual({ GBP: 2000n });
  });

  it("counts within five seconds with the time it has in production", async () => {
    await say(limited(10));
    const started = await watchPolicyFile({ db: pg.db, file });
    watches.push(started);
    await say(limited(20));
    const began = performance.now();
    await waitFor(
      async () =>
        JSON.stringify(await auto(), (_k, v) => (typeof v === "bigint" ? `${v}` : v)) === '{"GBP":"2000"}',
    );
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it("is not taken up when it is not valid, says so once, and is again once it is mended", async () => {
    await say(limited(10));
    const { watch: running, told } = await watch(undefined, 60_000);
    await say("kinds: { refund: { auto: lots } }");
    await running.look();
    await running.look();
    expect(told.invalid.map(({ message }) => message)).toEqual([
      expect.stringMatching(/line 1: kinds.refund.auto/),
    ]);
    expect(await auto()).toEqual({ GBP: 1000n });
    await rm(file);
    await running.look();
    await running.look();
    expect(told.invalid).toHaveLength(2);
    await say(limited(30));
    await running.look();
    expect(await auto()).toEqual({ GBP: 3000n });
  });

  it("in a comment only changes nothing and tells nobody", async () => {
    await say(limited(10));
    const { watch: running, told } = await watch(undefined, 60_000);
    await say(`# reviewed\n${limited(10)}`);
    await running.look();
    expect(told).toEqual({ activated: [], invalid: [], errors: [] });
  });

  it("back to what it said before is taken up too", async () => {
    await say(limited(10));
    const { watch: running } = await watch(undefined, 60_000);
    await say(limited(20));
    await running.look();
    await say(limited(10));
    await running.look();
    expect(await auto()).toEqual({ GBP: 1000n });
  });

  it("does not undo what another process activated, as long as it stays as it is", async () => {
    await say(limited(10));
    const { watch: running } = await watch(undefined, 60_000);
    const newer = join(folder, "newer.yaml");
    await writeFile(newer, limited(50));
    watches.push(await watchPolicyFile({ db: pg.openAnother(), file: newer, everyMs: 60_000 }));
    await running.look();
    expect(await auto()).toEqual({ GBP: 5000n });
  });

  it("is tried again when the database did not answer", async () => {
    await say(limited(10));
    const { watch: running, told } = await watch(undefined, 60_000);
    await say(limited(20));
    await pg.db.sql(undefined, "ALTER TABLE policy_versions RENAME TO policy_versions_away");
    await running.look();
    await pg.db.sql(undefined, "ALTER TABLE policy_versions_away RENAME TO policy_versions");
    expect(told.errors).toHaveLength(1);
    expect(await auto()).toEqual({ GBP: 1000n });
    await running.look();
    expect(await auto()).toEqual({ GBP: 2000n });
  });
});

describe("policy check", () => {
  it("gives the hash and notices of a valid file, and lines of an invalid one", async () => {
    await say(limited(10));
    expect(await checkPolicyFile(file)).toMatchObject({
      ok: true,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    await say("kinds:\n  refund:\n    never: { GBP: x }\n");
    expect(await checkPolicyFile(file)).toMatchObject({
      ok: false,
      error: { problems: [{ line: 3, path: "kinds.refund.never.GBP" }], unreadable: false },
    });
    expect(await checkPolicyFile(join(folder, "none"))).toMatchObject({
      ok: false,
      error: { problems: [{ line: null }], unreadable: true },
    });
  });
});

describe("processes with different files, as in a deploy", () => {
  it("one with the old file that starts again puts it in force: the new one says so, once, until it is put right", async () => {
    const told: Required<Told> = { activated: [], invalid: [], errors: [], other: [] };
    await say(limited(50));
    const old = (await watch()).watch;
    file = join(folder, "new.yaml");
    await say(limited(10));
    const { watch: next } = await watch(told);
    expect(await auto()).toEqual({ GBP: 1_000n });
    expect(await next.standing()).toMatchObject({ ok: true });

    file = join(folder, "policy.yaml");
    await watch();
    expect(await auto()).toEqual({ GBP: 5_000n });
    await waitFor(() => told.other.length > 0, { what: "the new one to say so" });
    expect(await next.standing()).toMatchObject({
      ok: false,
      detail: expect.stringContaining(old.loaded.hash.slice(0, 12)),
    });
    for (let look = 0; look < 5; look += 1) await next.look();
    expect(told.other).toEqual([{ file: next.loaded.hash, inForce: old.loaded.hash }]);

    file = join(folder, "new.yaml");
    await watch();
    expect(await next.standing()).toMatchObject({ ok: true });
    expect(told.errors).toEqual([]);
  });
});
