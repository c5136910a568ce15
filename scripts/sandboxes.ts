// The database and the Slack workspace of docs/sandbox.md for a Countersign and a payment provider of one's own: `npm run sandboxes`.
// A folder as its argument holds the database instead of `.countersign/own-provider`.
import path from "node:path";
import { complain, print } from "../src/app/output.js";
import { stopSignal } from "../src/app/stop-signal.js";
import { demoEnvironment } from "../src/config/host.js";
import { startEmbedded } from "../src/db/embedded.js";
import { startSlackSandbox } from "../src/sandbox/slack/index.js";

const { signal } = stopSignal();
const dataDir = path.resolve(process.argv[2] ?? ".countersign/own-provider");
const database = await startEmbedded({ dataDir: path.join(dataDir, "postgres") });
try {
  const slack = await startSlackSandbox({
    port: demoEnvironment().slackPort,
    mode: "socket",
    seed: "countersign",
  });
  try {
    complain(`The workspace: ${slack.url}   Ctrl-C stops it and PostgreSQL. For the other terminal:`);
    print(
      `export DATABASE_URL='${database.url()}' SLACK_API_URL=${slack.apiUrl} SLACK_BOT_TOKEN=${slack.botToken} SLACK_APP_TOKEN=${slack.appToken} SLACK_TICKETS_CHANNEL=C_TICK SLACK_APPROVALS_CHANNEL=C_APPR SLACK_OPS_CHANNEL=C_OPS`,
    );
    if (!signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  } finally {
    await slack.stop();
  }
} finally {
  await database.stop();
}
