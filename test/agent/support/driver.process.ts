/**
 * A worker as a process of its own, so that a test can kill it for real: files the ticket (once, whoever does), confirms the
 * customer, drives what is due, and approves what is held, until the run has ended.
 *
 * Argument: a JSON document, see `DriverOptions`.
 */
import { setTimeout as pause } from "node:timers/promises";
import { messagesApiPlanner } from "../../../src/agent/index.js";
import { openDb } from "../../../src/db/connect.js";
import { armFailpoint, isFailpointName } from "../../../src/domain/failpoints.js";
import { confirmBinding, fileTicket } from "../../../src/runs/index.js";
import type { PaymentsControl } from "../../../src/sandbox/payments/index.js";
import { agentWorld } from "./world.js";

export interface DriverOptions {
  databaseUrl: string;
  modelUrl: string;
  paymentsUrl: string;
  text: string;
  /** Dies here, at this pass; null: works to the end. */
  killAt: { name: string; pass: number } | null;
  /** Of what it takes. Whoever follows a worker that died waits for it; two that live must not lose theirs to a busy machine. */
  leaseMs: number;
}

const options = JSON.parse(process.argv[2] ?? "{}") as DriverOptions;
const db = openDb({ url: options.databaseUrl, applicationName: "driver", poolSize: 5 });
const world = await agentWorld({
  db,
  control: null as unknown as PaymentsControl,
  paymentsUrl: options.paymentsUrl,
  planner: messagesApiPlanner({
    apiKey: "sk-test",
    baseUrl: options.modelUrl,
    model: "claude-sonnet-5-5",
    idleMs: 10_000,
  }),
  leaseMs: options.leaseMs,
  worker: `driver-${process.pid}`,
});
const { killAt } = options;
if (killAt !== null && isFailpointName(killAt.name)) {
  const die = async (): Promise<void> => {
    process.kill(process.pid, "SIGKILL");
    await pause(60_000);
  };
  armFailpoint(killAt.name, die, { atPass: killAt.pass });
}
const filed = await fileTicket(world.ctx, {
  source: "message",
  dedupeKey: "message:C_TICK:1",
  channelId: "C_TICK",
  messageTs: "1796000000.000001",
  filer: "U_AGENT",
  text: options.text,
});
await confirmBinding(world.ctx, { ticketId: filed.ticket.id, by: "U_AGENT" });
if (filed.outcome === "asked" || filed.run === null) throw new Error("there is no run");
for (;;) {
  await world.pump();
  if ((await world.view(filed.run.id)).run.ending !== null) break;
  for (const approval of await world.pending()) await world.click("U_SUP1", approval);
}
await world.close();
await db.close();
process.exit(0);
