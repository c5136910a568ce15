/**
 * A sender as a process of its own, so that a test can stop it for real. Asks the gate server before sending, as the ledger
 * would ask the database, and prints its verdict and code.
 *
 * Arguments: API url, gate url, timeout in milliseconds.
 */
import { request } from "undici";
import { createPayments } from "../../src/payments/index.js";
import { anOperation } from "./operation.js";

const [apiUrl = "", gateUrl = "", timeoutMs = ""] = process.argv.slice(2);
const payments = createPayments({ secretKey: "sk_test_stub", apiUrl, clock: { now: () => new Date(0) } });
const operation = anOperation();
const outcome = await payments.execute(operation, payments.buildRequest(operation), {
  idempotencyKey: operation.idempotencyKey,
  timeoutMs: Number(timeoutMs),
  beforeSend: async () => {
    const answer = await request(gateUrl);
    await answer.body.dump();
  },
});
process.stdout.write(
  JSON.stringify({ verdict: outcome.verdict, code: "code" in outcome ? outcome.code : null }),
);
await payments.close();
process.exit(0);
