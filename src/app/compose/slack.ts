/** Slack's part of the composition: settings from the environment, and the use cases that its listeners call. */
import type { Secret } from "../../config/index.js";
import type { SlackEnvironment } from "../../config/types.js";
import type { SlackConfig } from "../../slack/index.js";

/** Settings as the Slack room takes them. */
export function slackConfig(slack: SlackEnvironment, port: number): SlackConfig {
  const { transport } = slack;
  return {
    botToken: slack.botToken.reveal(),
    transport:
      transport.mode === "http"
        ? { mode: "http", signingSecret: transport.signingSecret.reveal() }
        : { mode: "socket", appToken: transport.appToken.reveal() },
    apiUrl: slack.apiUrl,
    channels: slack.channels,
    port,
  };
}

/** Every secret of Slack, for the log's redaction. */
export function slackSecrets(slack: SlackEnvironment): readonly Secret[] {
  const { transport } = slack;
  return [slack.botToken, transport.mode === "http" ? transport.signingSecret : transport.appToken];
}
