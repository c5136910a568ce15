/**
 * `npm run demo`: everything on one machine until Ctrl-C, or one story played to its end. A second start carries on where the
 * first one stopped.
 */
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { hostEnvironment, plannerEnvironment } from "../../config/host.js";
import { type OpenDb, openDb } from "../../db/connect.js";
import { FAULT_WORDS } from "../../sandbox/payments/index.js";
import { demoShop } from "../../shop/index.js";
import { complain, print } from "../output.js";
import { systemClock } from "../system.js";
import { readOperationsJson } from "./inspector.js";
import { assertPortFree } from "./ports.js";
import { launchProduct, type Product, untilReady } from "./product.js";
import { prepareShop } from "./seed.js";
import { startWorld, type World } from "./world.js";

/** Slow enough to watch an outcome being checked, quick enough not to wait for it. */
const DEMO_TIMING = {
  PROVIDER_TIMEOUT_MS: "4000",
  RECONCILE_EVERY_MS: "1000",
  RECONCILE_BASE_MS: "3000",
  RECONCILE_MAX_MS: "20000",
  QUARANTINE_AFTER_MS: "60000",
  LEASE_MS: "10000",
} as const;

const RESTART_AFTER_MS = 1_000;

export interface DemoOptions {
  dataDir: string;
  slackPort: number;
  paymentsPort: number;
  productPort: number;
}

/** Runs until the signal is aborted. @throws with the variable to set when a port is taken */
export async function runDemo(options: DemoOptions, stopped: AbortSignal): Promise<void> {
  await assertPortFree(options.slackPort, "DEMO_PORT");
  await assertPortFree(options.paymentsPort, "DEMO_PAYMENTS_PORT");
  await assertPortFree(options.productPort, "DEMO_PRODUCT_PORT");
  print(
    "Starting PostgreSQL, the payments sandbox, the Slack sandbox and Countersign. This takes a few seconds.",
  );

  let db: OpenDb | null = null;
  const world = await startWorld({
    dataDir: options.dataDir,
    slackPort: options.slackPort,
    paymentsPort: options.paymentsPort,
    postgresPort: 0,
    productPort: options.productPort,
    transport: "socket",
    policyFile: path.resolve("policies/default.yaml"),
    shop: demoShop({ today: systemClock.now() }),
    extraEnv: { ...DEMO_TIMING, ...plannerEnvironment() },
    keepWorkspace: true,
    operations: () => (db === null ? Promise.resolve([]) : readOperationsJson(db)),
  });
  try {
    db = openDb({ url: world.databaseUrl, applicationName: "countersign-demo", poolSize: 3 });
    await prepareShop(db, world.shop);
    await keepRunning(world, path.join(options.dataDir, "countersign.log"), stopped);
  } finally {
    await db?.close();
    await world.stop();
    print("Stopped. The next start carries on from here.");
  }
}

/** Keeps one product process alive, as a supervisor would: whatever was under way goes on after a crash. */
async function keepRunning(world: World, logFile: string, stopped: AbortSignal): Promise<void> {
  let product: Product | null = null;
  let greeted = false;
  const end = new Promise<"stopped">((resolve) => {
    if (stopped.aborted) resolve("stopped");
    else stopped.addEventListener("abort", () => resolve("stopped"), { once: true });
  });
  try {
    while (!stopped.aborted) {
      product = launchProduct({
        env: { ...hostEnvironment(), ...world.env },
        port: world.productPort,
        logFile,
      });
      const first = await Promise.race([
        end,
        untilReady(product, world.productPort).then(() => "ready" as const),
      ]);
      if (first === "stopped") return;
      if (!greeted) greet(world, logFile, product.pid);
      greeted = true;
      if ((await Promise.race([end, product.ended])) === "stopped") return;
      complain("Countersign ended; it is started again.");
      await pause(RESTART_AFTER_MS);
    }
  } finally {
    await product?.stop();
  }
}

/** What `run` needs; the policy's file, too: another one would be put in force for the demo. */
export function shellVariables({ env }: Pick<World, "env">): string {
  const names = [
    "DATABASE_URL",
    // What people's decisions are sealed with here.
    "SLACK_BOT_TOKEN",
    "STRIPE_API_URL",
    "STRIPE_SECRET_KEY",
    "STRIPE_WEBHOOK_SECRET",
    "POLICY_FILE",
  ];
  return [...names.map((name) => `${name}=${env[name] ?? ""}`), "PLANNER=scripted"].join(" ");
}

function greet(world: World, logFile: string, pid: number): void {
  print("");
  print(`  The workspace: ${world.slack.url}`);
  print("");
  print("  Try this:");
  print("  1. As Ada Filer, post in #support-tickets:");
  print("       Tom Whitfield's jacket arrived torn, order ORD-10042. Please refund the £180.00.");
  print("  2. Open the thread and press Confirm: this is the customer.");
  print(`  3. To see the hard part, open Inspector, Faults and switch on: ${FAULT_WORDS.commit_then_drop}.`);
  print(
    "  4. Switch to Sam Supervisor, open #approvals and press Approve. The outcome is checked, not guessed.",
  );
  print("  5. Switch to Noor Oncall and type /ops list in #ops.");
  print("");
  print("  The command line on this database (in another terminal):");
  print(`       DATABASE_URL=${world.databaseUrl} npx countersign ops list`);
  print("  To drive a ticket from the shell it needs the sandbox's payments, too, and tickets:");
  print(`       export ${shellVariables(world)}`);
  print("       npx countersign seed && npx countersign run TCK-2002");
  print("");
  print(
    `  Log: ${logFile}   Process: ${pid} (kill it: it is started again and nothing is lost)   Ctrl-C stops everything.`,
  );
  print("");
}
