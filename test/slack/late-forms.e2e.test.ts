/** On-call's forms whose provider answers late, while the person, or somebody else, has gone on. */
import { afterEach, expect, test } from "vitest";
import type { OpsUseCases } from "../../src/ops/index.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { quarantined } from "./support/quarantined.js";
import { answers, readable } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { startWorld, type World, type WorldOptions } from "./support/world.js";

const database = withDatabase();
let world: World | undefined;
const opened: (() => void)[] = [];

afterEach(async () => {
  for (const open of opened.splice(0)) open();
  await world?.stop();
  world = undefined;
});

function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open: () => void = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  opened.push(open);
  return { passed, open };
}

const SENTENCE = "The provider shows it: re_42 of £180.00 GBP (succeeded).";
const asked: Awaited<ReturnType<OpsUseCases["askProvider"]>> = {
  outcome: "asked",
  probe: { says: "committed", providerRef: "re_42", sentence: SENTENCE },
};

async function start(options: Partial<WorldOptions> = {}) {
  await loadShop(database.db);
  const w = await startWorld({ db: database.db, mode: "http", ...options });
  world = w;
  const held = await quarantined(w);
  const { control } = w.sandbox;
  const card = await waitFor(() =>
    control.messages("U_ONC1", "C_OPS").find((one) => readable(one).includes("Confirm committed")),
  );
  const open = async (as: string, label: string) => {
    await control.click({ as, at: { channel: "C_OPS", ts: card.ts }, label });
    return waitFor(() => control.modals(as)[0], { what: `the form of ${label}` });
  };
  const shown = (as: string): string => readable({ text: "", blocks: control.modals(as)[0]?.blocks ?? [] });
  const submit = (as: string, viewId: string) =>
    control.submitView({ as, viewId, values: { reason: "looked", evidence: "note 7" } });
  /** The late answer has been brought to the form, or tried to. */
  const updated = () =>
    waitFor(() =>
      control.journal(0, 1_000).some((entry) => entry.kind === "api" && entry.method === "views.update"),
    );
  const said = (as: string): readonly string[] => answers(w.sandbox, as, "C_OPS");
  const status = async (): Promise<string | undefined> =>
    (
      await w.db.sql<{ status: string }>(undefined, "SELECT status FROM operations WHERE id = $1", [
        held.operationId,
      ])
    )[0]?.status;
  return { w, held, control, open, shown, submit, said, status, updated };
}

test("an answer that comes after the form was sent does not bring the form back", async () => {
  const provider = gate();
  const resolving = gate();
  const { open, shown, submit, said, updated } = await start({
    ops: {
      askProvider: async () => {
        await provider.passed;
        return asked;
      },
      resolve: async () => {
        await resolving.passed;
        return { outcome: "refused", reason: "x", sentence: "It took long, and then no." };
      },
    },
  });
  const form = await open("U_ONC1", "Reject");
  expect(await submit("U_ONC1", form.id)).toMatchObject({ ok: true });
  expect(shown("U_ONC1")).toContain("the answer comes as a message");
  provider.open();
  await updated();
  resolving.open();
  await waitFor(() => said("U_ONC1").some((one) => one.includes("It took long, and then no.")));
  expect(shown("U_ONC1")).toContain("the answer comes as a message");
});

test("an answer that comes after the form was closed changes nothing", async () => {
  const provider = gate();
  const { w, control, open, said, status, updated } = await start({
    ops: {
      askProvider: async () => {
        await provider.passed;
        return asked;
      },
    },
  });
  const form = await open("U_ONC1", "Reject");
  await control.closeView({ as: "U_ONC1", viewId: form.id });
  provider.open();
  await updated();
  await w.drain();
  expect(control.modals("U_ONC1")).toEqual([]);
  expect(said("U_ONC1")).toEqual([]);
  expect(await status()).toBe("QUARANTINED");
});

test("a form that waits while somebody else settles it: who sends it hears that, and nothing is done twice", async () => {
  const provider = gate();
  let first = true;
  const { w, held, open, shown, submit, said, status } = await start({
    probe: () => ({ says: "absent" }),
    ops: {
      askProvider: async () => {
        if (first) {
          first = false;
          await provider.passed;
        }
        return asked;
      },
    },
  });
  const mine = await open("U_ONC1", "Confirm committed");
  const theirs = await open("U_ONC2", "Confirm committed");
  expect(await submit("U_ONC2", theirs.id)).toMatchObject({ ok: true });
  await waitFor(async () => (await status()) === "CONFIRMED");
  provider.open();
  await waitFor(() => shown("U_ONC1").includes(SENTENCE));
  await submit("U_ONC1", mine.id);
  await waitFor(() => said("U_ONC1").some((one) => /It is confirmed, so|settled/.test(one)));
  const applied = await w.db.sql(
    undefined,
    "SELECT by FROM resolutions WHERE operation_id = $1 AND state = 'applied'",
    [held.operationId],
  );
  expect(applied).toEqual([{ by: "U_ONC2" }]);
});

test.each([
  ["Reject", "proposed", "QUARANTINED", /waits for a second person's answer/],
  ["Authorise retry", "proposed", "QUARANTINED", /waits for a second person's answer/],
  ["Confirm committed", "applied", "CONFIRMED", /This form was carried out before/],
])(
  "%s sent twice at once by one person is recorded once, and the other answer says so",
  async (label, state, end, other) => {
    const { w, held, open, submit, said, status } = await start({ probe: () => ({ says: "absent" }) });
    const form = await open("U_ONC1", label);
    const acks = await Promise.all([submit("U_ONC1", form.id), submit("U_ONC1", form.id)]);
    const heard = await waitFor(() => {
      const all = [...said("U_ONC1"), ...acks.flatMap((ack) => (ack.ok ? [] : [ack.message]))];
      return all.length === 2 ? all : undefined;
    });
    expect(heard.filter((one) => other.test(one))).toHaveLength(1);
    const rows = await w.db.sql(
      "test.resolutions",
      "SELECT state, by FROM resolutions WHERE operation_id = $1",
      [held.operationId],
    );
    expect(rows).toEqual([{ state, by: "U_ONC1" }]);
    expect(await status()).toBe(end);
  },
);
