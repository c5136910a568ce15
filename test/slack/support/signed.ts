/** Requests as Slack signs them, made here and not by the sandbox: also those that no Slack would send. */
import { createHmac } from "node:crypto";

export interface Signed {
  readonly body: string;
  readonly type?: string;
  readonly atMs?: number;
  readonly secret?: string;
  readonly headers?: Record<string, string>;
}

export interface SignedAnswer {
  readonly status: number;
  readonly body: string;
  /** How long the server says to keep an idle connection, in seconds; null: it does not. */
  readonly keepsSeconds: number | null;
  /** Slack is asked not to send it again. */
  readonly noRetry: boolean;
}

/** One request to `POST /slack/events` of the app. */
export async function sendSigned(
  w: { readonly sandbox: { readonly signingSecret: string }; readonly slack: { readonly port: number } },
  { body, type = "application/json", atMs = Date.now(), secret, headers }: Signed,
): Promise<SignedAnswer> {
  const stamp = Math.floor(atMs / 1000);
  const signature = createHmac("sha256", secret ?? w.sandbox.signingSecret)
    .update(`v0:${stamp}:${body}`)
    .digest("hex");
  const answer = await fetch(`http://127.0.0.1:${w.slack.port}/slack/events`, {
    method: "POST",
    headers: {
      "content-type": type,
      "x-slack-request-timestamp": String(stamp),
      "x-slack-signature": `v0=${signature}`,
      ...headers,
    },
    body,
  });
  const [, seconds] = /timeout=(\d+)/u.exec(answer.headers.get("keep-alive") ?? "") ?? [];
  return {
    status: answer.status,
    body: await answer.text(),
    keepsSeconds: seconds === undefined ? null : Number(seconds),
    noRetry: answer.headers.get("x-slack-no-retry") === "1",
  };
}

/** An interactive payload (`block_actions`, `view_submission`) as Slack's form. */
export const interactionForm = (payload: object): Signed => ({
  body: new URLSearchParams({ payload: JSON.stringify(payload) }).toString(),
  type: "application/x-www-form-urlencoded",
});
