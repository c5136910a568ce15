// Takes the pictures of the README and docs from the real product in the demo's world: `npm run pictures`. Needs Chromium.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium, type Page } from "playwright-core";
import { prepareShop } from "../src/app/demo/seed.js";
import { Stage } from "../src/app/demo/stage.js";
import { startWorld } from "../src/app/demo/world.js";
import { systemClock } from "../src/app/system.js";
import { openDb } from "../src/db/connect.js";
import { demoShop } from "../src/shop/index.js";

const OUT = path.resolve("docs/pictures");
const CHROMIUM = "/usr/bin/chromium";
const dataDir = mkdtempSync(path.join(tmpdir(), "countersign-pictures-"));
mkdirSync(OUT, { recursive: true });

const world = await startWorld({
  dataDir,
  slackPort: 0,
  paymentsPort: 0,
  postgresPort: 0,
  productPort: 0,
  transport: "socket",
  policyFile: path.resolve("policies/default.yaml"),
  shop: demoShop({ today: systemClock.now() }),
  extraEnv: { PLANNER: "scripted", RECONCILE_BASE_MS: "500", RECONCILE_EVERY_MS: "500" },
  keepWorkspace: false,
});
const db = openDb({ url: world.databaseUrl, applicationName: "countersign-pictures" });
const stage = new Stage({ world, db, logFile: path.join(dataDir, "product.log") });
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
try {
  await prepareShop(db, world.shop);
  await stage.open();
  await stage.start();
  const thread = await stage.file(
    "U_AGENT",
    "Tom Whitfield's jacket arrived torn, order ORD-10042. Please refund the £180.00.",
  );
  await stage.confirmBinding(thread);
  await stage.messageWith(thread, "Approve");
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
  await show(page, "U_SUP1", "C_APPR");
  await page.getByText("Approval needed").first().waitFor();
  await page.screenshot({ path: path.join(OUT, "approval-card.png") });

  stage.fault({ kind: "commit_then_drop" });
  await stage.approve("U_SUP1", thread);
  await stage.runIn(thread, "resolved");
  await show(page, "U_AGENT", "C_TICK");
  await page
    .getByText(/\d+ repl/)
    .first()
    .click();
  await page
    .getByText(/refunded/i)
    .first()
    .waitFor();
  await page.screenshot({ path: path.join(OUT, "thread.png") });
} finally {
  await browser.close();
  await stage.stop();
  await db.close();
  await world.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

async function show(page: Page, person: string, channel: string): Promise<void> {
  await page.goto(`${world.slack.url}/archives/${channel}?as=${person}`);
  await page.getByText("App connected").first().waitFor();
}
