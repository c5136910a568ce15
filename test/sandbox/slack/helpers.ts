/** Starts a sandbox with the real Slack packages beside it, and takes everything down again. */
import { App, HTTPReceiver, SocketModeReceiver } from "@slack/bolt";
import { type Logger, LogLevel, WebClient } from "@slack/web-api";
import { afterEach } from "vitest";
import {
  type SlackSandbox,
  type SlackSandboxOptions,
  startSlackSandbox,
} from "../../../src/sandbox/slack/index.js";

const cleanups: (() => Promise<unknown>)[] = [];

/** Runs after the test, last registered first. */
export function onEnd(cleanup: () => Promise<unknown>): void {
  cleanups.push(cleanup);
}

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

export async function sandbox(options: Partial<SlackSandboxOptions> = {}): Promise<SlackSandbox> {
  const started = await startSlackSandbox({ port: 0, mode: "socket", rateLimits: false, ...options });
  onEnd(() => started.stop());
  return started;
}

/** Says nothing: the packages log what the tests provoke. */
export const quiet: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  setLevel: () => undefined,
  getLevel: () => LogLevel.ERROR,
  setName: () => undefined,
};

/** The real Web API client, every call sent once. */
export function web(sb: SlackSandbox, token: string | undefined = sb.botToken): WebClient {
  return new WebClient(token, {
    slackApiUrl: sb.apiUrl,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    logger: quiet,
  });
}

/** What a refused call answered. Fails when it was not refused. */
export async function refused(call: Promise<unknown>): Promise<{
  error: string;
  errors?: string[];
  needed?: string;
  provided?: string;
  response_metadata?: { messages?: string[]; acceptedScopes?: string[]; scopes?: string[] };
}> {
  let value: unknown;
  try {
    value = await call;
  } catch (error) {
    const data = (error as { data?: { error: string } }).data;
    if (data === undefined) throw error;
    return data;
  }
  throw new Error(`was not refused: ${JSON.stringify(value)}`);
}

export interface RunningApp {
  app: App;
  receiver: SocketModeReceiver | HTTPReceiver;
  stop: () => Promise<void>;
}

/** A real Bolt app over Socket Mode. `setUp` registers listeners before it starts. */
export async function socketApp(
  sb: SlackSandbox,
  setUp: (app: App) => void,
  options: { clientPingTimeout?: number } = {},
): Promise<RunningApp> {
  const receiver = new SocketModeReceiver({
    appToken: sb.appToken,
    logger: quiet,
    clientPingTimeout: options.clientPingTimeout ?? 5000,
    installerOptions: { clientOptions: { slackApiUrl: sb.apiUrl } },
  });
  const app = new App({
    token: sb.botToken,
    receiver,
    logger: quiet,
    convoStore: false,
    deferInitialization: true,
    clientOptions: { slackApiUrl: sb.apiUrl, retryConfig: { retries: 0 } },
  });
  let state: "connecting" | "connected" = "connected";
  receiver.client.on("connecting", () => {
    state = "connecting";
  });
  receiver.client.on("connected", () => {
    state = "connected";
  });
  await app.init();
  app.error(async () => undefined);
  setUp(app);
  await app.start();
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    // The client rejects a promise that nobody holds when it is told to stop while it connects.
    await until(() => state !== "connecting", "an end of connecting");
    const gone = new Promise<void>((resolve) => receiver.client.once("disconnected", () => resolve()));
    await app.stop();
    await Promise.race([gone, until(() => sb.control.connection().connected === 0)]);
  };
  onEnd(stop);
  return { app, receiver, stop };
}

/** A real Bolt app behind its HTTP receiver on a free port, and the sandbox pointed at it. */
export async function httpApp(sb: SlackSandbox, setUp: (app: App) => void): Promise<RunningApp> {
  const receiver = new HTTPReceiver({ signingSecret: sb.signingSecret, logger: quiet, port: 0 });
  const app = new App({
    token: sb.botToken,
    receiver,
    logger: quiet,
    convoStore: false,
    deferInitialization: true,
    clientOptions: { slackApiUrl: sb.apiUrl, retryConfig: { retries: 0 } },
  });
  await app.init();
  app.error(async () => undefined);
  setUp(app);
  const server = (await app.start({ port: 0, host: "127.0.0.1" } as never)) as unknown as {
    address(): { port: number };
    closeAllConnections(): void;
  };
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await app.stop();
  };
  onEnd(stop);
  sb.control.settings({ requestUrl: `http://127.0.0.1:${server.address().port}/slack/events` });
  return { app, receiver, stop };
}

/** Waits until the condition holds. Throws after half a minute. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = "the condition",
): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`${what} did not come true`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export const section = (text: string): { type: "section"; text: { type: "mrkdwn"; text: string } } => ({
  type: "section",
  text: { type: "mrkdwn", text },
});

export const button = (
  actionId: string,
  label = "Press",
  more: object = {},
): {
  type: "actions";
  elements: { type: "button"; action_id: string; text: { type: "plain_text"; text: string } }[];
} => ({
  type: "actions",
  elements: [{ type: "button", action_id: actionId, text: { type: "plain_text", text: label }, ...more }],
});

/** A small form with one required input. */
export function form(callbackId: string, more: object = {}): never {
  return {
    type: "modal",
    callback_id: callbackId,
    title: { type: "plain_text", text: "Form" },
    submit: { type: "plain_text", text: "Send" },
    blocks: [
      {
        type: "input",
        block_id: "reason",
        label: { type: "plain_text", text: "Reason" },
        element: { type: "plain_text_input", action_id: "text" },
      },
    ],
    ...more,
  } as never;
}
