/** Slack's part of the composition: settings from the environment, and the use cases that its listeners call. */
import type { Secret } from "../../config/index.js";
import type { SlackEnvironment } from "../../config/types.js";
import { assertNever } from "../../domain/assert-never.js";
import type { SlackConfig } from "../../slack/index.js";

/** Settings as the Slack room takes them. */
export function slackConfig(
  slack: SlackEnvironment,
  port: number,
  { providerKeyTtlMs: keyTtlMs }: { readonly providerKeyTtlMs: number },
): SlackConfig {
  const { transport } = slack;
  return {
    botToken: slack.botToken.reveal(),
    transport: revealed(transport),
    apiUrl: slack.apiUrl,
    channels: slack.channels,
    port,
    keyTtlMs,
  };
}

function revealed(transport: SlackEnvironment["transport"]): SlackConfig["transport"] {
  switch (transport.mode) {
    case "http":
      return { mode: "http", signingSecret: transport.signingSecret.reveal() };
    case "socket":
      return { mode: "socket", appToken: transport.appToken.reveal() };
    case "none":
      return transport;
    default:
      return assertNever(transport, "transport");
  }
}

/** Every secret of Slack, for the log's redaction. */
export function slackSecrets(slack: SlackEnvironment): readonly Secret[] {
  const { transport, botToken } = slack;
  switch (transport.mode) {
    case "http":
      return [botToken, transport.signingSecret];
    case "socket":
      return [botToken, transport.appToken];
    case "none":
      return [botToken];
    default:
      return assertNever(transport, "transport");
  }
}
