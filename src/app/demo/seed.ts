/** The demo's shop and seeded tickets. */
import type { Db } from "../../db/connect.js";
import type { ShopFile } from "../../shop/index.js";
import { offlineContext } from "../compose/offline.js";
import { importShopFile } from "../compose/shop.js";

/** Loads the shop unless it is there: what happened to its orders since stays. */
export async function prepareShop(db: Db, shop: ShopFile): Promise<void> {
  const [known] = await db.sql<{ one: number }>("demo_shop_there", "SELECT 1 AS one FROM orders LIMIT 1");
  if (known === undefined) await importShopFile(offlineContext(db), shop);
}
