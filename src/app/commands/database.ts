import { parseConfig } from "../../config/index.js";
import { grantAppRole } from "../../db/app-role.js";
import { applyMigrations } from "../../db/migrate.js";
import { counted } from "../../domain/text/counted.js";
import { migrateQueueTables } from "../../jobs/index.js";
import { DEMO_TICKETS, demoShop } from "../../shop/index.js";
import { offlineContext } from "../compose/offline.js";
import { importShopFile } from "../compose/shop.js";
import { print } from "../output.js";
import { systemClock } from "../system.js";
import { withDb } from "./open.js";

/** `countersign migrate`, as the owner of the schema. */
export async function migrate(options: { appRole?: string }): Promise<void> {
  const { database, redisUrl } = parseConfig(["database"]);
  const url = database.url.reveal();
  const applied = await applyMigrations(url);
  print(applied.length === 0 ? "The schema is up to date." : `Applied: ${applied.join(", ")}.`);
  if (options.appRole === undefined) return;
  // The role may make no tables: the queue's are made for it.
  if (redisUrl === null) await migrateQueueTables(url);
  const password = database.appRolePassword?.reveal() ?? null;
  await grantAppRole(url, { name: options.appRole, password });
  print(`${options.appRole} may work with rows and can alter neither events nor tables.`);
}

/** `countersign seed`: the demo shop and its tickets; running it again changes nothing that has happened since. */
export async function seed(): Promise<void> {
  await withDb(async (db) => {
    const ctx = offlineContext(db);
    const result = await importShopFile(ctx, demoShop({ today: systemClock.now() }));
    const { fileTicket } = await import("../../runs/index.js");
    let filed = 0;
    for (const ticket of DEMO_TICKETS) {
      const answer = await fileTicket(ctx, {
        source: "seed",
        dedupeKey: `seed:${ticket.ref}`,
        ref: ticket.ref,
        filer: ticket.filer,
        text: ticket.text,
        start: false,
      });
      if (answer.outcome === "filed") filed += 1;
    }
    print(
      `Loaded ${counted(result.customers, "customer")}, ${counted(result.orders, "order")}, ${counted(result.subscriptions, "subscription")}, ${counted(result.helpArticles, "help article")}; ${counted(filed, "new ticket")}.`,
    );
  });
}
