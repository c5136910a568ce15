import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { COMMANDS, SHORTCUTS } from "../../src/slack/actions.js";
import { LIMITS } from "../../src/slack/limits.js";

const text = readFileSync("manifest.yml", "utf8");
interface ManifestFile {
  display_information: { name: string; description: string };
  features: {
    shortcuts: { name: string; type: string; callback_id: string; description: string }[];
    slash_commands: { command: string; usage_hint: string; should_escape: boolean }[];
  };
  oauth_config: { scopes: { bot: string[] } };
  settings: { event_subscriptions: { bot_events: string[] }; socket_mode_enabled: boolean };
}
const manifest = parse(text) as ManifestFile;

describe("manifest.yml", () => {
  test("names exactly the commands and shortcuts that have listeners", () => {
    expect(manifest.features.slash_commands.map(({ command }) => command).sort()).toEqual(
      Object.values(COMMANDS).sort(),
    );
    expect(manifest.features.shortcuts.map(({ callback_id }) => callback_id)).toEqual(
      Object.values(SHORTCUTS),
    );
    expect(manifest.features.slash_commands.every(({ should_escape }) => should_escape)).toBe(true);
  });

  test("stays within Slack's limits for manifests", () => {
    expect(manifest.display_information.name.length).toBeLessThanOrEqual(35);
    expect(manifest.display_information.description.length).toBeLessThanOrEqual(140);
    for (const { name, description } of manifest.features.shortcuts) {
      expect(name.length).toBeLessThanOrEqual(24);
      expect(description.length).toBeLessThanOrEqual(150);
    }
    for (const { usage_hint } of manifest.features.slash_commands)
      expect(usage_hint.length).toBeLessThanOrEqual(1000);
    expect(LIMITS.viewTitle).toBe(24);
  });

  test("becomes valid for HTTP by uncommenting the lines with YOUR-HOST", () => {
    const http = text
      .replaceAll(/# ((?:url|request_url): https:\/\/YOUR-HOST)/gu, "$1")
      .replace("socket_mode_enabled: true", "socket_mode_enabled: false");
    const parsed = parse(http) as {
      settings: { event_subscriptions: { request_url: string }; interactivity: { request_url: string } };
      features: { slash_commands: { url: string }[] };
    };
    const url = "https://YOUR-HOST/slack/events";
    expect(parsed.settings.event_subscriptions.request_url).toBe(url);
    expect(parsed.settings.interactivity.request_url).toBe(url);
    expect(parsed.features.slash_commands.map((command) => command.url)).toEqual([url, url]);
  });

  test("asks for no scope that nothing uses", () => {
    expect(manifest.oauth_config.scopes.bot).toEqual([
      "app_mentions:read",
      "channels:history",
      "groups:history",
      "channels:read",
      "groups:read",
      "chat:write",
      "commands",
      "users:read",
      "usergroups:read",
    ]);
  });
});

describe("the Slack packages' sore points", () => {
  test("the socket client is newer than the one that leaked its connections (B5)", () => {
    const { version } = JSON.parse(readFileSync("node_modules/@slack/socket-mode/package.json", "utf8")) as {
      version: string;
    };
    const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
    expect(major * 10_000 + minor * 100 + patch).toBeGreaterThanOrEqual(3_00_01);
  });

  test("no options object carries headers, and each client has one of its own (B7, B8)", () => {
    const sources = ["src/slack/web.ts", "src/slack/start.ts", "src/slack/transport/sockets.ts"].map((file) =>
      readFileSync(file, "utf8"),
    );
    for (const source of sources) {
      for (const [, options = ""] of source.matchAll(
        /(?:clientOptions: |new CountedClient\([^,]+,\s*)\{([^}]*)\}/gu,
      )) {
        expect(options).not.toMatch(/\bheaders\b/);
        expect(options).toMatch(/retryConfig: \{ retries: 0/);
      }
    }
    expect(sources.join("\n").match(/clientOptions: \{/gu)).toHaveLength(2);
    expect(sources.join("\n").match(/new CountedClient\(/gu)).toHaveLength(1);
  });
});
