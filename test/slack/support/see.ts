/** What a person sees, for assertions. */
import { OPERATION_STATUSES } from "../../../src/domain/operation.js";
import type { MessageView, SlackSandbox } from "../../../src/sandbox/slack/index.js";

/** Every text of a message that a person reads, buttons included, as Slack shows it: entities decoded. */
export function readable(message: Pick<MessageView, "text" | "blocks">): string {
  const parts: string[] = [];
  collect(message.blocks, parts);
  return decode(parts.length === 0 ? message.text : parts.join("\n"));
}

function collect(value: unknown, parts: string[]): void {
  if (Array.isArray(value)) {
    for (const item of value) collect(item, parts);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  const record = value as Record<string, unknown>;
  if (
    (record["type"] === "mrkdwn" || record["type"] === "plain_text") &&
    typeof record["text"] === "string"
  ) {
    parts.push(record["text"]);
    return;
  }
  for (const [key, child] of Object.entries(record)) if (key !== "confirm") collect(child, parts);
}

export const decode = (text: string): string =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

/** Messages of a channel as a person sees them, with the replies of each thread behind its root. */
export function everything(sandbox: SlackSandbox, as: string, channel: string): MessageView[] {
  return sandbox.control
    .messages(as, channel, { ephemeral: true })
    .flatMap((root) =>
      root.threadTs === null || root.threadTs === root.ts
        ? [
            root,
            ...sandbox.control
              .messages(as, channel, { threadTs: root.ts, ephemeral: true })
              .filter((one) => one.ts !== root.ts),
          ]
        : [root],
    );
}

/** Ephemeral answers that this person sees in the channel and its threads, oldest first. */
export function answers(sandbox: SlackSandbox, as: string, channel: string): string[] {
  return everything(sandbox, as, channel)
    .filter((message) => message.ephemeral)
    .map(readable);
}

/** States as the database spells them. */
export const RAW_STATE = new RegExp(`\\b(?:${OPERATION_STATUSES.join("|")})\\b`, "u");

/** What the app has said anywhere, in messages, forms and Home, that names a state as the database spells it. Buttons' values are none of it. */
export const rawStates = (sandbox: SlackSandbox): string[] =>
  sandbox.control
    .journal(0, 100_000)
    .flatMap((entry) => {
      if (entry.kind === "api" || entry.kind === "response_url") return textsIn(entry.args);
      // What a form's fields are told.
      return entry.kind === "delivery" ? [JSON.stringify(entry.response) ?? ""] : [];
    })
    .filter((text) => RAW_STATE.test(text));

/** Every text in a call's arguments or in blocks. */
export function textsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) =>
    key === "text" && typeof child === "string" ? [child] : textsIn(child),
  );
}

/** How often the app called a method, faults included. */
export function calls(
  sandbox: SlackSandbox,
  method: string,
): { args: Record<string, unknown>; response: unknown }[] {
  return sandbox.control
    .journal(0, 100_000)
    .flatMap((entry) =>
      entry.kind === "api" && entry.method === method ? [{ args: entry.args, response: entry.response }] : [],
    );
}
