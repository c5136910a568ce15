/**
 * Plays a hostile planner through the real loop, gate, ledger, dispatch and approvals on a real database, against the payments
 * sandbox, with honest tickets beside it; then counts from outside.
 */

import { scriptedPlanner } from "../../agent/index.js";
import { clockOffset, dbNow, setClockOffset } from "../../db/clock.js";
import type { RunId } from "../../domain/ids.js";
import type { Tx } from "../../domain/ports/database.js";
import type { Notices } from "../../domain/ports/notices.js";
import { createPayments } from "../../payments/index.js";
import { readPolicyText } from "../../policy/index.js";
import { confirmBinding, fileTicket } from "../../runs/index.js";
import { type PaymentsControl, startPaymentsSandbox } from "../../sandbox/payments/index.js";
import { importShop } from "../../shop/index.js";
import { workUntilRest } from "../crew.js";
import { seededRandom } from "../faults/random.js";
import { silent } from "../silent.js";
import { customerIdOf, type Desk, type DeskPorts, openDesk } from "../tickets/desk.js";
import { seedProvider } from "../tickets/evaluate.js";
import { type Case, honestCase, hostileCase } from "./cases.js";
import { type HostileCase, hostilePlanner } from "./hostile-planner.js";
import { type Injected, injectedCases } from "./injections.js";
import { type DecidingPeople, decidingPeople } from "./people.js";
import { WORST_CASE_POLICY } from "./premises.js";
import { tally, type WorstCaseReport } from "./report.js";
import { type SeenAtGate, seenAtGate } from "./seen-at-gate.js";
import { type Resident, resident, townFile } from "./town.js";

export interface WorstCaseOptions {
  readonly ports: DeskPorts;
  /** Any database for the provider. */
  readonly providerUrl: string;
  /** At least so many tool calls are proposed. */
  readonly proposals: number;
  readonly seed: number;
  /** File of handed injection strings; null: there is none. */
  readonly injections: string | null;
  readonly onProgress?: (proposed: number) => void;
}

const SECRET_KEY = "sk_test_worst_case";
const HOSTILE_A_ROUND = 6;
const HONEST_A_ROUND = 2;
/** Between two rounds: what nobody decided expires. */
const NIGHT_MS = 25 * 3_600_000;

export async function playWorstCase(options: WorstCaseOptions): Promise<WorstCaseReport> {
  const { ports } = options;
  const sandbox = await startPaymentsSandbox({
    databaseUrl: options.providerUrl,
    port: 0,
    secretKey: SECRET_KEY,
  });
  const provider = createPayments({ secretKey: SECRET_KEY, apiUrl: sandbox.url, clock: ports.clock });
  try {
    await sandbox.control.reset();
    return await inTown(options, sandbox.control, provider);
  } finally {
    await provider.close();
    await sandbox.stop();
  }
}

async function inTown(
  options: WorstCaseOptions,
  control: PaymentsControl,
  provider: ReturnType<typeof createPayments>,
): Promise<WorstCaseReport> {
  const { ports, seed } = options;
  const told = new Map<string, string[]>();
  const hostile = new Map<number, HostileCase>();
  const hostileRuns = new Set<string>();
  let proposals = 0;
  let gate: SeenAtGate | undefined;
  const desk = await openDesk({
    ports: {
      ...ports,
      compose: (parts) => {
        const composed = ports.compose(parts);
        gate = seenAtGate(composed.agent.gate, (runId) => hostileRuns.has(runId));
        return { ...composed, agent: { ...composed.agent, gate: gate.gate } };
      },
    },
    provider,
    planner: hostilePlanner({
      seed,
      caseOf: (number) => hostile.get(number) ?? null,
      honest: scriptedPlanner(),
      onProposed: (calls) => {
        proposals += calls;
      },
    }),
    policy: readPolicyText(WORST_CASE_POLICY, "worst-case policy"),
    shop: [],
    time: "jump",
    notices: remembering(told),
  });
  try {
    if (gate === undefined) throw new Error("nothing was composed");
    const people = decidingPeople(desk.db, desk.approvals, seed);
    const world: World = { desk, control, people, ports, residents: [], cases: [], hostile, hostileRuns };
    while (proposals < options.proposals) {
      await playRound(world, seed);
      options.onProgress?.(proposals);
    }
    const injected = options.injections === null ? null : await playInjected(world, options.injections);
    return await tally({ ...world, gate, injected, told, proposals, seed });
  } finally {
    await desk.close();
  }
}

interface World {
  readonly desk: Desk;
  readonly control: PaymentsControl;
  readonly people: DecidingPeople;
  readonly ports: DeskPorts;
  readonly residents: Resident[];
  readonly cases: (Case & { runId: RunId | null })[];
  readonly hostile: Map<number, HostileCase>;
  readonly hostileRuns: Set<string>;
}

/** New residents, their tickets, a day's work, a night. */
async function playRound(world: World, seed: number): Promise<void> {
  const from = world.residents.length;
  const random = seededRandom(seed * 7_919 + from);
  const arrived = Array.from({ length: HOSTILE_A_ROUND + HONEST_A_ROUND }, (_, index) =>
    resident(from + index),
  );
  await settle(world, arrived);
  const cases = arrived.map((own, index) => {
    if (index >= HOSTILE_A_ROUND) return honestCase(own.number, own);
    const others = arrived.filter((one) => one !== own);
    const played = hostileCase(own.number, own, others[random.between(0, others.length - 1)] ?? own, random);
    world.hostile.set(own.number, { number: own.number, own, others, script: null });
    return played;
  });
  for (const one of cases) await file(world, one);
  await workUntilRest(world.desk, world.people.lookAtCards);
  await passNight(world);
  await workUntilRest(world.desk, world.people.lookAtCards);
}

async function playInjected(world: World, path: string): Promise<readonly Injected[]> {
  const injected = injectedCases(path, world.residents.length);
  for (const { residents, hostile, played } of injected) {
    await settle(world, residents);
    world.hostile.set(hostile.number, hostile);
    await file(world, played);
  }
  await workUntilRest(world.desk, world.people.lookAtCards);
  return injected;
}

/** Residents move in: their orders at the shop, their payments at the provider. */
async function settle(world: World, arrived: readonly Resident[]): Promise<void> {
  const { desk, control, ports } = world;
  const file = townFile(arrived, await dbNow(desk.db));
  await importShop({ db: desk.db, ids: ports.ids, onBelowReserved: async () => {} }, { content: file });
  await seedProvider(control, file);
  world.residents.push(...arrived);
}

async function file(world: World, one: Case): Promise<void> {
  const { desk, ports } = world;
  const filed = await fileTicket(desk.runs, {
    source: "cli",
    dedupeKey: ports.ids.next("worst_"),
    filer: one.filer,
    text: one.text,
    customerId: one.chosen ? await customerIdOf(desk.db, one.own.ref) : null,
  });
  if (filed.outcome === "asked")
    throw new Error(`the ticket of case ${one.number} was not understood as one`);
  if (one.confirms && filed.ticket.binding === "unconfirmed") {
    await confirmBinding(desk.runs, { ticketId: filed.ticket.id, by: one.filer });
  }
  const runId = filed.run?.id ?? null;
  if (runId !== null && one.kind === "hostile") world.hostileRuns.add(runId);
  world.cases.push({ ...one, runId });
}

async function passNight({ desk, control }: World): Promise<void> {
  const offset = (await clockOffset(desk.db)) + NIGHT_MS;
  await setClockOffset(desk.db, offset);
  control.setClockOffsetMs(offset, { signatures: false });
}

/** Sentences by code; the planner's own words are marked as its own wherever they stand. */
function remembering(told: Map<string, string[]>): Notices<Tx> {
  return {
    ...silent,
    thread: async (tx, { ticketId, message }) => {
      if (message.type === "model_says" || message.type === "escalated") return;
      tx.afterCommit(() => {
        told.set(ticketId, [...(told.get(ticketId) ?? []), JSON.stringify(message)]);
      });
    },
  };
}
