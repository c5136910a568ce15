/** A world of its own for one test: a fresh database, both sandboxes, and the product as processes that the test starts. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { STORY_TIMING } from "../../../src/app/demo/play.js";
import { freePort } from "../../../src/app/demo/ports.js";
import { type Product, startProduct } from "../../../src/app/demo/product.js";
import { prepareShop } from "../../../src/app/demo/seed.js";
import { Stage } from "../../../src/app/demo/stage.js";
import { startWorld, type World } from "../../../src/app/demo/world.js";
import { hostEnvironment } from "../../../src/config/host.js";
import { type OpenDb, openDb } from "../../../src/db/connect.js";
import { type Seals, sealsWith } from "../../../src/domain/seals.js";
import { verifyAudit } from "../../../src/ledger/index.js";
import { demoShop, type ShopFile } from "../../../src/shop/index.js";
import type { Databases } from "./databases.js";

/** Short, so that what a dead process held is free again soon; the order between them is production's. */
export const QUICK_TIMING = {
  ...STORY_TIMING,
  PROVIDER_TIMEOUT_MS: "2000",
  RECONCILE_EVERY_MS: "300",
  RECONCILE_BASE_MS: "300",
  RECONCILE_MAX_MS: "1500",
  LEASE_MS: "3000",
} as const;

/** A server that was handed in is shared by all processes of a test. */
const FEW_CONNECTIONS = process.env["DATABASE_URL"] === undefined ? {} : { DATABASE_POOL_SIZE: "5" };

export interface HouseOptions {
  transport?: "socket" | "http";
  /** Policy file relative to the project, or its text. Default: the demo's. */
  policy?: { file: string } | { text: string };
  env?: Readonly<Record<string, string>>;
  changeShop?: (shop: ShopFile) => ShopFile;
  redisUrl?: string;
}

export interface House {
  readonly world: World;
  readonly db: OpenDb;
  readonly stage: Stage;
  /** The file that the product reads its policy from; the test may rewrite it. */
  readonly policyFile: string;
  /** One more process of the product, on a port of its own. Ended with the house. */
  another(options?: {
    roles?: string;
    env?: Readonly<Record<string, string>>;
    port?: number;
  }): Promise<Product>;
  /** What happened so far, line by line. */
  readonly told: readonly string[];
  /** What the processes logged, newest last. */
  log(): string;
  /** As the product seals decisions in this house. */
  readonly seals: Seals;
  /** @throws when the audit chain is not intact */
  assertAuditIntact(): Promise<void>;
  close(): Promise<void>;
}

/** Builds the house, runs the test in it, and takes everything down; a failure tells what was said and logged. */
export async function inHouse(
  databases: Databases,
  options: HouseOptions,
  run: (house: House) => Promise<void>,
): Promise<void> {
  const house = await openHouse(databases, options);
  try {
    await telling(house, () => run(house));
  } finally {
    await house.close();
  }
}

/** Runs it; a failure tells what was said and what each process logged. */
export async function telling<T>(house: House, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new Error(`${String(error)}\n--- told\n${house.told.join("\n")}\n--- logged\n${house.log()}`, {
      cause: error,
    });
  }
}

/** Sandboxes up, shop loaded, no product yet. */
export async function openHouse(databases: Databases, options: HouseOptions): Promise<House> {
  const home = mkdtempSync(path.join(tmpdir(), "countersign-e2e-"));
  const policyFile = path.join(home, "policy.yaml");
  writeFileSync(policyFile, policyText(options));
  const shop = demoShop({ today: new Date() });
  const world = await startWorld({
    dataDir: home,
    slackPort: 0,
    paymentsPort: 0,
    postgresPort: 0,
    productPort: 0,
    databaseServerUrl: databases.serverUrl,
    databaseName: await databases.fresh(),
    transport: options.transport ?? "socket",
    policyFile,
    shop: options.changeShop?.(shop) ?? shop,
    extraEnv: { ...QUICK_TIMING, ...FEW_CONNECTIONS, ...options.env },
    keepWorkspace: false,
    ...(options.redisUrl === undefined ? {} : { redisUrl: options.redisUrl }),
  });
  const told: string[] = [];
  const others: Product[] = [];
  const db = openDb({ url: world.databaseUrl, applicationName: "countersign-e2e", poolSize: 6 });
  const stage = new Stage({
    world,
    db,
    logFile: path.join(home, "product.log"),
    tell: (line) => told.push(line),
  });
  await prepareShop(db, world.shop);
  await stage.open();
  const seals = sealsWith({ secret: world.env["SEAL_SECRET"] ?? world.env["SLACK_BOT_TOKEN"] ?? "" });
  return {
    world,
    db,
    stage,
    seals,
    told,
    policyFile,
    log: () =>
      readdirSync(home)
        .filter((name) => name.endsWith(".log"))
        .flatMap((name) => [`--- ${name}`, ...lastLines(readFileSync(path.join(home, name), "utf8"))])
        .join("\n"),
    another: async ({ roles, env, port } = {}) => {
      const product = await startProduct({
        env: { ...hostEnvironment(), ...world.env, ...env },
        port: port ?? (await freePort()),
        logFile: path.join(home, `product-${others.length + 2}.log`),
        ...(roles === undefined ? {} : { roles }),
      });
      others.push(product);
      return product;
    },
    assertAuditIntact: async () => {
      const report = await verifyAudit(db, seals);
      if (!report.intact) throw new Error(`the audit chain is broken: ${JSON.stringify(report.broken)}`);
    },
    close: async () => {
      stage.calm();
      await Promise.all([stage.stop(), ...others.map((product) => stopEven(product))]);
      await db.close();
      await world.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** The newest lines, and before them the newest warnings and errors of longer ago. */
function lastLines(text: string): string[] {
  const lines = text.split("\n");
  const grave = lines.slice(0, -40).filter((line) => /"level":"(?:warn|error|fatal)"/u.test(line));
  return [...grave.slice(-40), ...lines.slice(-40)];
}

/** A stopped (SIGSTOP) process hears no SIGTERM. */
async function stopEven(product: Product): Promise<void> {
  if (product.running()) product.signal("SIGCONT");
  await product.stop();
}

function policyText({ policy }: HouseOptions): string {
  if (policy !== undefined && "text" in policy) return policy.text;
  return readFileSync(path.resolve(policy?.file ?? "policies/default.yaml"), "utf8");
}
