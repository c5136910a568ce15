import { parseConfig } from "../../config/index.js";
import { applyMigrations } from "../../db/migrate.js";
import { DEMO_TICKETS, demoShop } from "../../shop/index.js";
import { offlineContext } from "../compose/offline.js";
import { importShopFile } from "../compose/shop.js";
import { print } from "../output.js";
import { systemClock } from "../system.js";
import { withDb } from "./open.js";

/** `countersign migrate` */
export async function migrate(): Promise<void> {
  const config = parseConfig(["database"]);
  const applied = await applyMigrations(config.database.url.reveal());
  print(applied.length === 0 ? "The schema is up to date." : `Applied: ${applied.join(", ")}.`);
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
      `Loaded ${result.customers} customers, ${result.orders} orders, ${result.subscriptions} subscriptions, ${result.helpArticles} help articles; ${filed} new tickets.`,
    );
  });
}
