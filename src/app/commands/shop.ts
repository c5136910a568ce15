import { formatMoney, money } from "../../domain/money.js";
import { counted } from "../../domain/text/counted.js";
import { findOrder, type Order, ShopFileError } from "../../shop/index.js";
import { offlineContext } from "../compose/offline.js";
import { importShopFile } from "../compose/shop.js";
import { CommandFailure, EXIT_CHECK_FAILED } from "../exit.js";
import { readTextFile } from "../files.js";
import { complain, print, printJson } from "../output.js";
import { withDb } from "./open.js";

/** `countersign shop import FILE` */
export async function importFile(file: string): Promise<void> {
  const content = readJson(file);
  await withDb(async (db) => {
    try {
      const result = await importShopFile(offlineContext(db), content);
      for (const key of result.ignoredKeys)
        complain(`${file}: ${key} is no key of the format and was ignored`);
      for (const reference of result.keptCancelled) {
        complain(`${reference} is cancelled and stays so: an import never un-cancels`);
      }
      print(
        `Imported ${counted(result.customers, "customer")}, ${counted(result.orders, "order")}, ${counted(result.subscriptions, "subscription")}, ${counted(result.helpArticles, "help article")}.`,
      );
    } catch (error) {
      if (!(error instanceof ShopFileError)) throw error;
      const lines = error.problems.map((problem) => `  ${problem.path}: ${problem.message}`);
      throw new CommandFailure(
        `${file} was not imported; nothing was changed:\n${lines.join("\n")}`,
        EXIT_CHECK_FAILED,
      );
    }
  });
}

/** `countersign shop show REF` */
export async function show(reference: string, options: { json?: boolean }): Promise<void> {
  await withDb(async (db) => {
    const order = await findOrder(db, reference);
    if (order === null) throw new CommandFailure(`There is no order ${reference}.`);
    if (options.json === true) printJson(orderJson(order));
    else printOrder(order);
  });
}

function readJson(file: string): unknown {
  const text = readTextFile(file);
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`${file} is not JSON: ${reason}`, EXIT_CHECK_FAILED);
  }
}

function orderJson(order: Order): object {
  return {
    ref: order.ref,
    customer: order.customer.ref,
    status: order.status,
    currency: order.currency,
    payment:
      order.payment === null
        ? null
        : {
            captured: order.payment.captured,
            reserved: order.payment.reserved,
            refunded: order.payment.refunded,
            refundedElsewhere: order.payment.refundedElsewhere,
          },
  };
}

function printOrder(order: Order): void {
  print(`${order.ref}  ${order.status}  customer ${order.customer.ref}`);
  if (order.payment === null) {
    print("no payment");
    return;
  }
  const amount = (minor: bigint): string => formatMoney(money(minor, order.currency));
  print(`captured             ${amount(order.payment.captured)}`);
  print(`reserved             ${amount(order.payment.reserved)}`);
  print(`refunded             ${amount(order.payment.refunded)}`);
  print(`refunded elsewhere   ${amount(order.payment.refundedElsewhere)}`);
}
