/** The world of a benchmark: sandboxes, a throw-away database filled with history, and the product as processes of its own. */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { hostEnvironment } from "../../config/host.js";
import { environment } from "../../config/index.js";
import { type OpenDb, openDb } from "../../db/connect.js";
import { fill } from "../../evaluation/index.js";
import type { MessageView } from "../../sandbox/slack/control-types.js";
import { demoShop } from "../../shop/index.js";
import { FIRST_OF_MANY, withManyOrders } from "../demo/many-orders.js";
import { freePort } from "../demo/ports.js";
import { type Product, startProduct } from "../demo/product.js";
import { prepareShop } from "../demo/seed.js";
import { startWorld, type World } from "../demo/world.js";
import { complain } from "../output.js";
import { systemClock } from "../system.js";
import { execute } from "./throw-away.js";

export interface BenchWorld {
  readonly world: World;
  readonly db: OpenDb;
  /** An empty database on the same server. */
  readonly besideUrl: string;
  /** Where the product's queue is on Redis: the database of the next number on the same server. */
  readonly besideRedisUrl: string | null;
  readonly machine: string;
  /** One more process of the product; ended with the world. */
  product(roles: "app" | "worker"): Promise<Product>;
  /** Files a refund of the nth order and confirms its customer. */
  fileRefund(n: number, pounds: number): Promise<void>;
  /** Files a held refund of the nth order; nobody confirms, so that no card is waited for. */
  fileHeld(n: number): Promise<void>;
  until(what: string, look: () => Promise<boolean>, withinMs?: number, everyMs?: number): Promise<void>;
}

export interface BenchWorldOptions {
  readonly transport: "http" | "socket";
  /** Orders that a benchmark may refund. */
  readonly orders: number;
  readonly rows: number;
  readonly pendingApprovals: number;
  readonly timing?: Readonly<Record<string, string>>;
}

const LOOK_EVERY_MS = 5;
const WITHIN_MS = 120_000;

const POLICY = `version: 1
kinds:
  refund:
    auto: { GBP: 5000 }
    never: { GBP: 200000 }
    approval: [{ upTo: { GBP: 200000 }, role: supervisor, approvers: 1 }]
roles: { supervisor: { usergroups: [S_SUP] }, oncall: { usergroups: [S_ONC] } }
`;

/** Builds it, hands it to `work`, and removes it whatever comes of it. */
export async function withBenchWorld<T>(
  options: BenchWorldOptions,
  work: (bench: BenchWorld) => Promise<T>,
): Promise<T> {
  const home = mkdtempSync(path.join(os.tmpdir(), "countersign-bench-"));
  chmodSync(home, 0o755); // started by root, the embedded server runs as another user
  const policyFile = path.join(home, "policy.yaml");
  writeFileSync(policyFile, POLICY);
  const name = `countersign_bench_${randomBytes(4).toString("hex")}`;
  const external = environment()["DATABASE_URL"] || undefined;
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const shop = withManyOrders(demoShop({ today: systemClock.now() }), options.orders + 2);
    const world = await startWorld({
      dataDir: home,
      slackPort: 0,
      paymentsPort: 0,
      postgresPort: 0,
      productPort: 0,
      transport: options.transport,
      databaseName: name,
      ...(external === undefined ? {} : { databaseServerUrl: external }),
      ...(environment()["REDIS_URL"] ? { redisUrl: environment()["REDIS_URL"] ?? "" } : {}),
      policyFile,
      shop,
      extraEnv: { PLANNER: "scripted", LOG_LEVEL: "warn", ...options.timing },
      keepWorkspace: false,
    });
    stops.push(() => world.stop());
    const db = openDb({ url: world.databaseUrl, applicationName: "countersign-bench", poolSize: 6 });
    stops.push(() => db.close());
    const besideUrl = new URL(world.databaseUrl);
    besideUrl.pathname = `/${name}_beside`;
    await execute(world.databaseUrl, [`CREATE DATABASE ${name}_beside`]);
    await prepareShop(db, shop);
    const redisUrl = environment()["REDIS_URL"] || null;
    const besideRedisUrl = redisUrl === null ? null : nextRedisDatabase(redisUrl);
    const bench = benchWorld({ world, db, besideUrl: besideUrl.href, besideRedisUrl, home, stops });
    const bare = { ...bench, machine: await machineLine(db) };
    await history(bare, options);
    return await work(bare);
  } finally {
    for (const stop of stops.reverse()) {
      await stop().catch((error: unknown) => complain(`something did not end cleanly: ${String(error)}`));
    }
    if (external !== undefined) {
      const made = [name, `${name}_payments`, `${name}_beside`];
      await execute(
        external,
        made.map((database) => `DROP DATABASE IF EXISTS ${database} WITH (FORCE)`),
      );
    }
    rmSync(home, { recursive: true, force: true });
  }
}

/** Redis has sixteen unless it is told otherwise. */
const REDIS_DATABASES = 16;

function nextRedisDatabase(url: string): string {
  const next = new URL(url);
  next.pathname = `/${(Number(next.pathname.slice(1) || "0") + 1) % REDIS_DATABASES}`;
  return next.href;
}

interface Parts {
  world: World;
  db: OpenDb;
  besideUrl: string;
  besideRedisUrl: string | null;
  home: string;
  stops: (() => Promise<unknown>)[];
}

function benchWorld({
  world,
  db,
  besideUrl,
  besideRedisUrl,
  home,
  stops,
}: Parts): Omit<BenchWorld, "machine"> {
  let processes = 0;
  const until: BenchWorld["until"] = async (what, look, withinMs = WITHIN_MS, everyMs = LOOK_EVERY_MS) => {
    const began = performance.now();
    while (!(await look())) {
      if (performance.now() - began > withinMs) throw new Error(`waited in vain for ${what}`);
      await pause(everyMs);
    }
  };
  const post = async (n: number, pounds: number): Promise<string> => {
    const text = `The jacket of order ORD-${FIRST_OF_MANY + n} is torn. Please refund £${pounds.toFixed(2)}.`;
    const filed = await world.slack.control.post({ as: "U_AGENT", channel: "C_TICK", text });
    if (!filed.ok) throw new Error(`a ticket could not be filed: ${filed.message}`);
    return filed.ts;
  };
  return {
    world,
    db,
    besideUrl,
    besideRedisUrl,
    until,
    product: async (roles) => {
      processes += 1;
      const port = roles === "app" ? world.productPort : await freePort();
      const product = await startProduct({
        env: { ...hostEnvironment(), ...world.env },
        port,
        roles,
        logFile: path.join(home, `product-${processes}.log`),
      });
      stops.push(() => product.stop());
      return product;
    },
    fileHeld: async (n) => {
      await post(n, 180);
    },
    fileRefund: async (n, pounds) => {
      const ts = await post(n, pounds);
      let card: MessageView | undefined;
      await until(`the customer of ORD-${FIRST_OF_MANY + n} to be asked for`, async () => {
        card = world.slack.control
          .messages("U_AGENT", "C_TICK", { threadTs: ts })
          .find((message) => JSON.stringify(message.blocks).includes("Confirm"));
        return card !== undefined;
      });
      await world.slack.control.click({
        as: "U_AGENT",
        at: { channel: "C_TICK", ts: card?.ts ?? "" },
        label: "Confirm",
      });
    },
  };
}

/** One confirmed and one held refund of the product's own making, copied as often as is asked for. */
async function history(bench: BenchWorld, options: BenchWorldOptions): Promise<void> {
  if (options.rows === 0 && options.pendingApprovals === 0) return;
  const makers = [await bench.product("app"), await bench.product("worker")];
  await bench.fileRefund(options.orders, 20);
  await bench.fileRefund(options.orders + 1, 180);
  const idOf = async (order: number, status: string): Promise<string | undefined> =>
    (
      await bench.db.sql<{ id: string }>(
        "bench.made",
        "SELECT id FROM operations WHERE order_ref = $1 AND status = $2",
        [`ORD-${FIRST_OF_MANY + order}`, status],
      )
    )[0]?.id;
  let [ended, held] = ["", ""];
  await bench.until("one confirmed and one held refund", async () => {
    ended = (await idOf(options.orders, "CONFIRMED")) ?? "";
    held = (await idOf(options.orders + 1, "AWAITING_APPROVAL")) ?? "";
    return ended !== "" && held !== "";
  });
  await Promise.all(makers.map((product) => product.stop()));
  await fill(
    bench.world.databaseUrl,
    { ended, held },
    { operations: options.rows, pendingApprovals: options.pendingApprovals },
    (done) => complain(`${done} of ${options.rows} operations of history`),
  );
}

/** Processor, memory, Node and PostgreSQL: numbers mean nothing without them. */
async function machineLine(db: OpenDb): Promise<string> {
  const [server] = await db.sql<{ version: string }>(
    undefined,
    "SELECT current_setting('server_version') AS version",
  );
  const processors = os.cpus();
  const memory = (os.totalmem() / 2 ** 30).toFixed(0);
  const load = os.loadavg()[0]?.toFixed(1);
  return `${processors.length} × ${processors[0]?.model.trim() ?? "unknown"}, ${memory} GB, load ${load}, Node ${process.version}, PostgreSQL ${server?.version ?? "?"}`;
}
