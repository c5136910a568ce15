/** `countersign ops health`: what `/ops health` says, from the shell. */
import { z } from "zod";
import { parseConfig } from "../../config/index.js";
import { frozenReason } from "../../domain/frozen.js";
import { type HealthPart, type HealthView, healthNow, healthTold } from "../../ops/index.js";
import { NOT_ASKED, providerOfEnvironment } from "../compose/ask-provider.js";
import { ORPHAN_WINDOW_MS } from "../compose/contexts.js";
import { providerParts } from "../compose/health-parts.js";
import { CommandFailure } from "../exit.js";
import { print, printJson } from "../output.js";
import { systemClock } from "../system.js";
import { withDb } from "./open.js";

const READY_TIMEOUT_MS = 2_000;

/** @throws CommandFailure when a part is not well */
export async function health(options: { json?: boolean }): Promise<void> {
  const { port } = parseConfig([]);
  await withDb(async (db) => {
    const view = await healthNow({
      db,
      healthParts: async () => [...(await processParts(port)), ...(await paymentsParts())],
    });
    if (options.json === true) printJson(healthJson(view));
    else for (const line of healthText(view)) print(line);
    const bad = view.parts.filter(({ ok }) => !ok).map(({ name }) => name);
    if (bad.length > 0) throw new CommandFailure(`Not well: ${bad.join(", ")}.`);
  });
}

async function paymentsParts(): Promise<readonly HealthPart[]> {
  const provider = providerOfEnvironment();
  if (provider === null) return [{ name: "payments, books", ok: true, looked: false, sentence: NOT_ASKED }];
  try {
    return await providerParts(provider, { clock: systemClock, windowMs: ORPHAN_WINDOW_MS });
  } finally {
    await provider.close();
  }
}

/** `GET /readyz`, as each process answers it. */
const Ready = z.object({
  checks: z.array(z.object({ part: z.string(), ok: z.boolean(), detail: z.string() })),
});

/** Queue and Slack are each process's own: the one beside this shell is asked. */
async function processParts(port: number): Promise<readonly HealthPart[]> {
  const url = `http://127.0.0.1:${port}/readyz`;
  const ready = await fetch(url, { signal: AbortSignal.timeout(READY_TIMEOUT_MS) })
    .then(async (answer) => Ready.safeParse(await answer.json()))
    .catch(() => null);
  if (ready === null || !ready.success)
    return [
      {
        name: "queue, slack",
        ok: true,
        looked: false,
        sentence: `Not looked at: they are each process's own, and none answers at ${url} (PORT names another).`,
      },
    ];
  return ready.data.checks
    .filter(({ part }) => part !== "database")
    .map(({ part, ok, detail }) => ({ name: part, ok, sentence: detail }));
}

/** Lines for a terminal; times in UTC, people by their Slack ids. */
export function healthText(view: HealthView): string[] {
  const { title, facts, backlog } = healthTold(view);
  const frozen = view.frozen.filter((state) => state.frozen);
  return [
    `${title}.`,
    "",
    ...view.parts.map((part) => `${standing(part)}  ${part.name}: ${part.sentence}`),
    "",
    ...facts.map((line) => line.replaceAll("`", "")),
    ...(backlog.length === 0 ? ["No backlog."] : ["", "Backlog", ...backlog.map((line) => `  ${line}`)]),
    ...(frozen.length === 0
      ? ["Nothing is frozen."]
      : [
          "",
          ...frozen.map(
            (state) => `${frozenReason({ ...state, since: state.at })} By ${state.by ?? "nobody known"}.`,
          ),
        ]),
  ];
}

const standing = ({ ok, looked }: HealthPart): string =>
  looked === false ? "?     " : ok ? "ok    " : "not ok";

const healthJson = ({ outcome: _, oldestUnknown, ...view }: HealthView): Record<string, unknown> => ({
  healthy: healthTold({ outcome: "health", oldestUnknown, ...view }).title === "Healthy",
  ...view,
  oldestUnknown:
    oldestUnknown === null
      ? null
      : { id: oldestUnknown.id, status: oldestUnknown.status, since: oldestUnknown.unknownSince },
});
