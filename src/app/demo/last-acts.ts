/** What people did last and how Slack and the app answered them, for whoever waited in vain. */
import type { JournalEntry } from "../../sandbox/slack/control-types.js";

const SHOWN = 16;
const LONGEST = 400;
const INTERACTIONS: ReadonlySet<string> = new Set([
  "block_actions",
  "view_submission",
  "slash_command",
  "shortcut",
  "message_action",
]);

/** One line an entry, oldest first, each on a line of its own; empty when nobody did anything. */
export function lastActs(journal: readonly JournalEntry[]): string {
  return journal
    .flatMap((entry) => {
      const line = lineOf(entry);
      return line === null
        ? []
        : [`\n  ${new Date(entry.atMs).toISOString().slice(11, 23)} ${line.slice(0, LONGEST)}`];
    })
    .slice(-SHOWN)
    .join("");
}

function lineOf(entry: JournalEntry): string | null {
  switch (entry.kind) {
    case "act":
      return `${entry.as} ${entry.what} ${JSON.stringify(entry.request)}: ${JSON.stringify(entry.result)}`;
    case "delivery":
      return INTERACTIONS.has(entry.type)
        ? `${entry.type} ${entry.outcome} in ${entry.tookMs ?? "?"} ms: ${JSON.stringify(entry.response)}`
        : null;
    case "response_url":
      return `only the person was told (${entry.status}): ${JSON.stringify(entry.args["text"])}`;
    case "api":
      return apiLine(entry);
    case "socket":
    case "admin":
      return null;
  }
}

/** Forms, what one person was told, and whatever was not done. */
function apiLine({ method, args, response, status }: Extract<JournalEntry, { kind: "api" }>): string | null {
  const refused =
    typeof response === "object" && response !== null && !Array.isArray(response) && response["ok"] !== true
      ? `: ${JSON.stringify(response["error"])}`
      : null;
  if (refused === null && !method.startsWith("views.") && method !== "chat.postEphemeral") return null;
  const said = args["text"] === undefined ? "" : ` ${JSON.stringify(args["text"])}`;
  return `${method}${said} (${status ?? "no answer"})${refused ?? ""}`;
}
